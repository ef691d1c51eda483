// Compiles the keywords that constrain objects.
#include <algorithm>
#include <numeric>

#include "json/schema/compiler.hpp"

namespace fairlead::json::schema {

namespace {

// Orders names by length first: most names differ in length, and comparing lengths is cheap.
bool shorter_or_before(std::string_view a, std::string_view b) noexcept {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

// Returns the members sorted, each name once, with the last schema declared for it. Sets `next_declared` to
// the position of the name among the declarations; link_in_order() replaces these positions.
std::vector<NamedMember> sorted_members(std::vector<NamedMember> declared) {
  for (std::size_t i = 0; i < declared.size(); ++i) declared[i].next_declared = static_cast<std::uint32_t>(i);
  std::ranges::sort(declared, [](const NamedMember& a, const NamedMember& b) {
    return a.name != b.name ? shorter_or_before(a.name, b.name) : a.next_declared < b.next_declared;
  });
  std::vector<NamedMember> members;
  for (const NamedMember& member : declared) {
    if (members.empty() || members.back().name != member.name) {
      members.push_back(member);
    } else if (member.node != kNone) {
      members.back().node = member.node;
    }
  }
  return members;
}

// Replaces the positions in `next_declared` by links to the member declared next.
void link_in_order(ObjectRules& rules) {
  std::vector<std::uint32_t> order(rules.members.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, {}, [&rules](std::uint32_t i) { return rules.members[i].next_declared; });
  for (std::size_t i = 0; i < order.size(); ++i)
    rules.members[order[i]].next_declared = order[(i + 1) % order.size()];
  if (!order.empty()) rules.first_declared = order.front();
}

}  // namespace

std::uint32_t ObjectRules::find(std::string_view name, std::uint32_t guess) const noexcept {
  if (guess < members.size() && members[guess].name == name) return guess;
  const auto found = std::ranges::lower_bound(members, name, shorter_or_before, &NamedMember::name);
  if (found == members.end() || found->name != name) return kNone;
  return static_cast<std::uint32_t>(found - members.begin());
}

void Compiler::compile_objects(Node& node) {
  if (!has_any(Keyword::properties, Keyword::required, Keyword::pattern_properties,
               Keyword::additional_properties, Keyword::property_names, Keyword::min_properties,
               Keyword::max_properties, Keyword::dependent_required, Keyword::dependencies))
    return;
  ObjectRules rules;
  compile_members(rules);
  compile_pattern_properties(rules);
  rules.additional = node_at(Keyword::additional_properties);
  rules.property_names = node_at(Keyword::property_names);
  rules.min_members = read_count(Keyword::min_properties, 0);
  rules.max_members = read_count(Keyword::max_properties, kUnlimited);
  compile_dependencies(rules, Keyword::dependent_required);
  compile_dependencies(rules, Keyword::dependencies);
  node.object_rules = static_cast<std::uint32_t>(table_.objects.size());
  table_.objects.push_back(std::move(rules));
}

// Merges `properties` and `required` into one list, so that each member of a value is looked up once.
void Compiler::compile_members(ObjectRules& rules) {
  std::vector<NamedMember> declared;
  if (has(Keyword::properties)) {
    const TapeIndex map = value_of(Keyword::properties);
    for (TapeIndex key = map + 1; key != tape_->next(map); key = tape_->next(key + 1))
      declared.push_back({.name = read_string(key), .node = node_at(key + 1)});
  }
  std::vector<std::string_view> required;
  if (has(Keyword::required)) required = read_names(value_of(Keyword::required));
  for (const std::string_view name : required) declared.push_back({.name = name});
  rules.members = sorted_members(std::move(declared));
  link_in_order(rules);
  for (const std::string_view name : required) {
    NamedMember& member = rules.members[rules.find(name, kNone)];
    if (member.required_index != kNone) continue;
    member.required_index = static_cast<std::uint32_t>(rules.required.size());
    rules.required.push_back(name);
  }
}

void Compiler::compile_pattern_properties(ObjectRules& rules) {
  if (!has(Keyword::pattern_properties)) return;
  const TapeIndex map = value_of(Keyword::pattern_properties);
  for (TapeIndex key = map + 1; key != tape_->next(map); key = tape_->next(key + 1))
    rules.patterns.emplace_back(compile_pattern(key), node_at(key + 1));
}

// Compiles the names of the members that a member requires. (In draft 7 `dependencies` may also contain
// schemas: those are compiled as applicators.)
void Compiler::compile_dependencies(ObjectRules& rules, Keyword keyword) {
  if (!has(keyword) || !expect(value_of(keyword), Type::object)) return;
  const TapeIndex map = value_of(keyword);
  for (TapeIndex key = map + 1; key != tape_->next(map); key = tape_->next(key + 1)) {
    if (keyword == Keyword::dependencies && tape_->type(key + 1) != Type::array) continue;
    rules.dependencies.push_back({keyword, read_string(key), read_names(key + 1)});
  }
}

}  // namespace fairlead::json::schema
