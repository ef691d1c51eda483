// The keywords about objects.
#include <algorithm>
#include <numeric>

#include "json/schema/compiler.hpp"

namespace fairlead::json::schema {

namespace {

// By length first: most names differ in it, and comparing lengths is cheap.
bool shorter_or_before(std::string_view a, std::string_view b) noexcept {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

// Each name once, with the last schema it was given. `after` is its place among the declared.
std::vector<NamedMember> sorted(std::vector<NamedMember> declared) {
  for (std::size_t i = 0; i < declared.size(); ++i) declared[i].after = static_cast<std::uint32_t>(i);
  std::ranges::sort(declared, [](const NamedMember& a, const NamedMember& b) {
    return a.name != b.name ? shorter_or_before(a.name, b.name) : a.after < b.after;
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

// From places among the declared to links in their order.
void link_in_order(ObjectRules& rules) {
  std::vector<std::uint32_t> order(rules.members.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, {}, [&rules](std::uint32_t i) { return rules.members[i].after; });
  for (std::size_t i = 0; i < order.size(); ++i)
    rules.members[order[i]].after = order[(i + 1) % order.size()];
  if (!order.empty()) rules.first = order.front();
}

}  // namespace

std::uint32_t ObjectRules::find(std::string_view name, std::uint32_t guess) const noexcept {
  if (guess < members.size() && members[guess].name == name) return guess;
  const auto found = std::ranges::lower_bound(members, name, shorter_or_before, &NamedMember::name);
  if (found == members.end() || found->name != name) return kNone;
  return static_cast<std::uint32_t>(found - members.begin());
}

void Compiler::objects(Node& node) {
  if (!has_any(Keyword::properties, Keyword::required, Keyword::pattern_properties,
               Keyword::additional_properties, Keyword::property_names, Keyword::min_properties,
               Keyword::max_properties, Keyword::dependent_required, Keyword::dependencies))
    return;
  ObjectRules rules;
  members(rules);
  pattern_properties(rules);
  rules.additional = this->node(Keyword::additional_properties);
  rules.names = this->node(Keyword::property_names);
  rules.min_members = count(Keyword::min_properties, 0);
  rules.max_members = count(Keyword::max_properties, kUnlimited);
  dependencies(rules, Keyword::dependent_required);
  dependencies(rules, Keyword::dependencies);
  node.object = static_cast<std::uint32_t>(table_.objects.size());
  table_.objects.push_back(std::move(rules));
}

// `properties` and `required` become one list, so that a value's members are looked up once.
void Compiler::members(ObjectRules& rules) {
  std::vector<NamedMember> declared;
  if (has(Keyword::properties)) {
    const Index map = at(Keyword::properties);
    for (Index key = map + 1; key != tape_->next(map); key = tape_->next(key + 1))
      declared.push_back({.name = text(key), .node = node(key + 1)});
  }
  std::vector<std::string_view> required;
  if (has(Keyword::required)) required = names(at(Keyword::required));
  for (const std::string_view name : required) declared.push_back({.name = name});
  rules.members = sorted(std::move(declared));
  link_in_order(rules);
  for (const std::string_view name : required) {
    NamedMember& member = rules.members[rules.find(name, kNone)];
    if (member.required != kNone) continue;
    member.required = static_cast<std::uint32_t>(rules.required.size());
    rules.required.push_back(name);
  }
}

void Compiler::pattern_properties(ObjectRules& rules) {
  if (!has(Keyword::pattern_properties)) return;
  const Index map = at(Keyword::pattern_properties);
  for (Index key = map + 1; key != tape_->next(map); key = tape_->next(key + 1))
    rules.patterns.emplace_back(pattern(key), node(key + 1));
}

// Names that a member needs beside it. (In draft 7 the same keyword may hold schemas: those are applicators.)
void Compiler::dependencies(ObjectRules& rules, Keyword keyword) {
  if (!has(keyword) || !expect(at(keyword), Type::object)) return;
  const Index map = at(keyword);
  for (Index key = map + 1; key != tape_->next(map); key = tape_->next(key + 1)) {
    if (keyword == Keyword::dependencies && tape_->type(key + 1) != Type::array) continue;
    rules.dependencies.push_back({keyword, text(key), names(key + 1)});
  }
}

}  // namespace fairlead::json::schema
