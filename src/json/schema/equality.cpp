#include "json/schema/equality.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "json/decimal.hpp"

namespace fairlead::json::schema {

namespace {

constexpr std::size_t kStepsPerMember = 8;   // of an object whose members are sorted
constexpr std::size_t kStepsPerElement = 2;  // of an array whose elements are

struct Member {
  std::string key;
  Index value;
};

// What containers hold is paid for when it is looked at.
bool pay_for(const Tape& tape, Index at, Work& work) {
  return tape.type(at) < Type::array ? pay_for_string(tape, at, work) : work.spend(1);
}

// By key, each once.
std::vector<Member> sorted_members(ValueRef object, Work& work) {
  std::vector<Member> members;
  std::string room;
  const Tape& tape = object.tape;
  for (Index key = object.at + 1; key != tape.next(object.at); key = tape.next(key + 1)) {
    if (!pay_for_string(tape, key, work) || !work.spend(kStepsPerMember)) return {};
    members.push_back({std::string(tape.string(key, room)), key + 1});
  }
  std::ranges::sort(members, [](const Member& a, const Member& b) {
    return a.key != b.key ? a.key < b.key
                          : a.value > b.value;  // of the same key the last first: that one stays
  });
  const auto doubles = std::ranges::unique(members, {}, &Member::key);
  members.erase(doubles.begin(), doubles.end());
  return members;
}

bool equal_objects(ValueRef a, ValueRef b, Work& work) {
  const std::vector<Member> left = sorted_members(a, work);
  const std::vector<Member> right = sorted_members(b, work);
  return std::ranges::equal(left, right, [&](const Member& x, const Member& y) {
    return x.key == y.key && equal({a.tape, x.value}, {b.tape, y.value}, work);
  });
}

bool equal_arrays(ValueRef a, ValueRef b, Work& work) {
  if (a.tape.count(a.at) != b.tape.count(b.at)) return false;
  Index y = b.at + 1;
  for (Index x = a.at + 1; x != a.tape.next(a.at); x = a.tape.next(x), y = b.tape.next(y)) {
    if (!equal({a.tape, x}, {b.tape, y}, work)) return false;
  }
  return true;
}

bool equal_strings(ValueRef a, ValueRef b) {
  if (!a.tape.special(a.at) && !b.tape.special(b.at)) return a.tape.text(a.at) == b.tape.text(b.at);
  std::string left;
  std::string right;
  return a.tape.string(a.at, left) == b.tape.string(b.at, right);
}

std::uint64_t mixed(std::uint64_t hash, std::uint64_t more) {
  hash = (hash ^ more) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 29;
}

std::uint64_t hash_of(std::string_view text) {
  return std::hash<std::string_view>()(text);
}

std::uint64_t hash_number(std::string_view text) {
  const Decimal number(text);
  return mixed(hash_of(number.digits()),
               static_cast<std::uint64_t>(number.exponent()) * 2 + number.is_negative());
}

// Equal values have equal hashes.
std::uint64_t hash_of(ValueRef value, Work& work) {
  const auto& [tape, at] = value;
  if (!pay_for(tape, at, work)) return 0;
  std::uint64_t hash = static_cast<std::uint64_t>(tape.type(at));
  std::string room;
  switch (tape.type(at)) {
    case Type::number: return mixed(hash, hash_number(tape.text(at)));
    case Type::string: return mixed(hash, hash_of(tape.string(at, room)));
    case Type::array:
      for (Index i = at + 1; i != tape.next(at); i = tape.next(i))
        hash = mixed(hash, hash_of({tape, i}, work));
      return hash;
    case Type::object:
      for (const Member& member : sorted_members(value, work))
        hash = mixed(mixed(hash, hash_of(member.key)), hash_of({tape, member.value}, work));
      return hash;
    default: return mixed(hash, static_cast<std::uint64_t>(tape.text(at).front()));
  }
}

struct Hashed {
  std::uint64_t hash;
  std::uint32_t ordinal;
  Index at;
};

}  // namespace

bool equal(ValueRef a, ValueRef b, Work& work) {
  const Type type = a.tape.type(a.at);
  if (type != b.tape.type(b.at)) return false;
  if (!pay_for(a.tape, a.at, work) || !pay_for(b.tape, b.at, work)) return false;
  switch (type) {
    case Type::number:
      return a.tape.text(a.at) == b.tape.text(b.at) ||
             Decimal(a.tape.text(a.at)) == Decimal(b.tape.text(b.at));
    case Type::string: return equal_strings(a, b);
    case Type::array: return equal_arrays(a, b, work);
    case Type::object: return equal_objects(a, b, work);
    default: return a.tape.text(a.at) == b.tape.text(b.at);
  }
}

std::size_t distinct_keys(ValueRef object, Work& work) {
  return sorted_members(object, work).size();
}

// Only elements with the same hash are compared. Whoever makes many of those runs out of steps.
std::optional<std::pair<std::uint32_t, std::uint32_t>> find_equal_elements(ValueRef array, Work& work) {
  const Tape& tape = array.tape;
  std::vector<Hashed> elements;
  for (Index at = array.at + 1; at != tape.next(array.at); at = tape.next(at)) {
    if (!work.spend(kStepsPerElement)) return std::nullopt;
    elements.push_back({hash_of({tape, at}, work), static_cast<std::uint32_t>(elements.size()), at});
  }
  std::ranges::sort(elements, [](const Hashed& a, const Hashed& b) {
    return a.hash != b.hash ? a.hash < b.hash : a.ordinal < b.ordinal;
  });
  for (auto a = elements.begin(); a != elements.end(); ++a) {
    for (auto b = a + 1; b != elements.end() && b->hash == a->hash; ++b) {
      if (equal({tape, a->at}, {tape, b->at}, work)) return std::pair(a->ordinal, b->ordinal);
      if (work.exhausted()) return std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace fairlead::json::schema
