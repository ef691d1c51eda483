#include "json/schema/equality.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "json/decimal.hpp"

namespace fairlead::json::schema {

namespace {

constexpr std::size_t kStepsPerMember = 8;   // cost of sorting the members of an object, per member
constexpr std::size_t kStepsPerElement = 2;  // cost of sorting the elements of an array, per element

struct Member {
  std::string key;
  TapeIndex value;
};

// Charges `budget` for one value. The members and elements of a container are charged when they are read.
bool charge_value(const Tape& tape, TapeIndex entry, StepBudget& budget) {
  return tape.type(entry) < Type::array ? charge_string(tape, entry, budget) : budget.spend(1);
}

// Returns the members sorted by key, each key once with its last value.
std::vector<Member> sorted_members(ValueRef object, StepBudget& budget) {
  std::vector<Member> members;
  std::string buffer;
  const Tape& tape = object.tape;
  for (TapeIndex key = object.entry + 1; key != tape.next(object.entry); key = tape.next(key + 1)) {
    if (!charge_string(tape, key, budget) || !budget.spend(kStepsPerMember)) return {};
    members.push_back({std::string(tape.string(key, buffer)), key + 1});
  }
  std::ranges::sort(members, [](const Member& a, const Member& b) {
    return a.key != b.key
               ? a.key < b.key
               : a.value > b.value;  // the last value of a repeated key comes first: unique keeps it
  });
  const auto duplicates = std::ranges::unique(members, {}, &Member::key);
  members.erase(duplicates.begin(), duplicates.end());
  return members;
}

bool equal_objects(ValueRef a, ValueRef b, StepBudget& budget) {
  const std::vector<Member> left = sorted_members(a, budget);
  const std::vector<Member> right = sorted_members(b, budget);
  return std::ranges::equal(left, right, [&](const Member& x, const Member& y) {
    return x.key == y.key && equal({a.tape, x.value}, {b.tape, y.value}, budget);
  });
}

bool equal_arrays(ValueRef a, ValueRef b, StepBudget& budget) {
  if (a.tape.item_count(a.entry) != b.tape.item_count(b.entry)) return false;
  TapeIndex y = b.entry + 1;
  for (TapeIndex x = a.entry + 1; x != a.tape.next(a.entry); x = a.tape.next(x), y = b.tape.next(y)) {
    if (!equal({a.tape, x}, {b.tape, y}, budget)) return false;
  }
  return true;
}

bool equal_strings(ValueRef a, ValueRef b) {
  if (!a.tape.needs_decoding(a.entry) && !b.tape.needs_decoding(b.entry))
    return a.tape.text(a.entry) == b.tape.text(b.entry);
  std::string left;
  std::string right;
  return a.tape.string(a.entry, left) == b.tape.string(b.entry, right);
}

std::uint64_t combine_hashes(std::uint64_t hash, std::uint64_t more) {
  hash = (hash ^ more) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 29;
}

std::uint64_t hash_of(std::string_view text) {
  return std::hash<std::string_view>()(text);
}

std::uint64_t hash_number(std::string_view text) {
  const Decimal number(text);
  return combine_hashes(hash_of(number.digits()),
                        static_cast<std::uint64_t>(number.exponent()) * 2 + number.is_negative());
}

// Returns a hash of the value. Equal values have equal hashes.
std::uint64_t hash_of(ValueRef value, StepBudget& budget) {
  const auto& [tape, entry] = value;
  if (!charge_value(tape, entry, budget)) return 0;
  std::uint64_t hash = static_cast<std::uint64_t>(tape.type(entry));
  std::string buffer;
  switch (tape.type(entry)) {
    case Type::number: return combine_hashes(hash, hash_number(tape.text(entry)));
    case Type::string: return combine_hashes(hash, hash_of(tape.string(entry, buffer)));
    case Type::array:
      for (TapeIndex i = entry + 1; i != tape.next(entry); i = tape.next(i))
        hash = combine_hashes(hash, hash_of({tape, i}, budget));
      return hash;
    case Type::object:
      for (const Member& member : sorted_members(value, budget))
        hash =
            combine_hashes(combine_hashes(hash, hash_of(member.key)), hash_of({tape, member.value}, budget));
      return hash;
    default: return combine_hashes(hash, static_cast<std::uint64_t>(tape.text(entry).front()));
  }
}

struct HashedElement {
  std::uint64_t hash;
  std::uint32_t ordinal;
  TapeIndex entry;
};

}  // namespace

bool equal(ValueRef a, ValueRef b, StepBudget& budget) {
  const Type type = a.tape.type(a.entry);
  if (type != b.tape.type(b.entry)) return false;
  if (!charge_value(a.tape, a.entry, budget) || !charge_value(b.tape, b.entry, budget)) return false;
  switch (type) {
    case Type::number:
      return a.tape.text(a.entry) == b.tape.text(b.entry) ||
             Decimal(a.tape.text(a.entry)) == Decimal(b.tape.text(b.entry));
    case Type::string: return equal_strings(a, b);
    case Type::array: return equal_arrays(a, b, budget);
    case Type::object: return equal_objects(a, b, budget);
    default: return a.tape.text(a.entry) == b.tape.text(b.entry);
  }
}

std::size_t count_distinct_keys(ValueRef object, StepBudget& budget) {
  return sorted_members(object, budget).size();
}

// Compares only elements with the same hash. A value with many hash collisions exhausts the budget.
std::optional<std::pair<std::uint32_t, std::uint32_t>> find_equal_elements(ValueRef array,
                                                                           StepBudget& budget) {
  const Tape& tape = array.tape;
  std::vector<HashedElement> elements;
  for (TapeIndex entry = array.entry + 1; entry != tape.next(array.entry); entry = tape.next(entry)) {
    if (!budget.spend(kStepsPerElement)) return std::nullopt;
    elements.push_back({hash_of({tape, entry}, budget), static_cast<std::uint32_t>(elements.size()), entry});
  }
  std::ranges::sort(elements, [](const HashedElement& a, const HashedElement& b) {
    return a.hash != b.hash ? a.hash < b.hash : a.ordinal < b.ordinal;
  });
  for (auto a = elements.begin(); a != elements.end(); ++a) {
    for (auto b = a + 1; b != elements.end() && b->hash == a->hash; ++b) {
      if (equal({tape, a->entry}, {tape, b->entry}, budget)) return std::pair(a->ordinal, b->ordinal);
      if (budget.exhausted()) return std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace fairlead::json::schema
