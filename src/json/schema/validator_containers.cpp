// Checks the keywords that constrain arrays and objects.
#include <algorithm>

#include "json/schema/validator.hpp"

namespace fairlead::json::schema {

namespace {

// Tracks which of the required members an object has.
class RequiredTracker {
 public:
  explicit RequiredTracker(std::size_t required) : missing_count_(required) {
    if (required > 64) more_.resize((required - 1) / 64);
  }
  void add(std::uint32_t ordinal) noexcept {
    std::uint64_t& word = ordinal < 64 ? first_ : more_[ordinal / 64 - 1];
    const std::uint64_t bit = std::uint64_t{1} << (ordinal % 64);
    if ((word & bit) == 0) --missing_count_;
    word |= bit;
  }
  bool contains(std::uint32_t ordinal) const noexcept {
    return ((ordinal < 64 ? first_ : more_[ordinal / 64 - 1]) >> (ordinal % 64) & 1) != 0;
  }
  bool complete() const noexcept { return missing_count_ == 0; }

 private:
  std::size_t missing_count_;
  std::uint64_t first_ = 0;
  std::vector<std::uint64_t> more_;
};

}  // namespace

bool Validator::check_array(NodeId id, const ArrayRules& rules, TapeIndex value, EvaluatedSet* evaluated) {
  bool ok = true;
  const auto may_continue = [&ok, this](bool passed) {
    ok &= passed;
    return passed || !should_stop();
  };
  const std::uint32_t count = tape_.item_count(value);
  if (count < rules.min_items && !may_continue(fail(id, Keyword::min_items, value, count))) return false;
  if (count > rules.max_items && !may_continue(fail(id, Keyword::max_items, value, count))) return false;
  if (!may_continue(check_elements(rules, value, evaluated))) return false;
  if (rules.contains != kNone && !may_continue(check_contains(id, rules, value, evaluated))) return false;
  if (rules.unique) {
    if (const auto same = find_equal_elements({tape_, value}, budget_))
      return fail(id, Keyword::unique_items, value, same->first, same->second);
  }
  return ok && stop_reason() == StopReason::none;
}

bool Validator::check_elements(const ArrayRules& rules, TapeIndex value, EvaluatedSet* evaluated) {
  if (rules.prefix.empty() && rules.rest == kNone) return true;
  bool ok = true;
  std::uint32_t ordinal = 0;
  for (TapeIndex item = value + 1; item != tape_.next(value); item = tape_.next(item), ++ordinal) {
    const bool in_prefix = ordinal < rules.prefix.size();
    if (!in_prefix && rules.rest == kNone) break;
    if (evaluated != nullptr) evaluated->add(ordinal);
    if (budget_.spend(1) && check(in_prefix ? rules.prefix[ordinal] : rules.rest, item, nullptr)) continue;
    ok = false;
    if (should_stop()) return false;
  }
  return ok;
}

bool Validator::check_contains(NodeId id, const ArrayRules& rules, TapeIndex value, EvaluatedSet* evaluated) {
  std::uint32_t found = 0;
  std::uint32_t ordinal = 0;
  for (TapeIndex item = value + 1; item != tape_.next(value); item = tape_.next(item), ++ordinal) {
    // Enough elements match, and there is no maximum.
    if (found >= rules.min_contains && rules.max_contains == kUnlimited && evaluated == nullptr) return true;
    const bool fits = check_branch(rules.contains, item, nullptr, nullptr);
    if (stop_reason() != StopReason::none) return false;
    if (!fits) continue;
    ++found;
    if (evaluated != nullptr) evaluated->add(ordinal);
  }
  if (found < rules.min_contains) return fail(id, Keyword::contains, value, found);
  return found <= rules.max_contains || fail(id, Keyword::max_contains, value, found);
}

bool Validator::check_object(NodeId id, const ObjectRules& rules, TapeIndex value, EvaluatedSet* evaluated) {
  bool ok = true;
  const auto may_continue = [&ok, this](bool passed) {
    ok &= passed;
    return passed || !should_stop();
  };
  if (!may_continue(check_members(id, rules, value, evaluated))) return false;
  if (!may_continue(check_member_count(id, rules, value))) return false;
  return (rules.dependencies.empty() || check_dependencies(id, rules, value)) && ok;
}

// If a key is repeated, each of its values must be valid, because the program that reads the text next may
// use any of them.
bool Validator::check_members(NodeId id, const ObjectRules& rules, TapeIndex value, EvaluatedSet* evaluated) {
  RequiredTracker seen(rules.required.size());
  std::uint32_t guess = rules.first_declared;
  std::uint32_t ordinal = 0;
  bool ok = true;
  std::string buffer;
  const TapeIndex end = tape_.next(value);
  for (TapeIndex key = value + 1; key != end; key = tape_.next(key + 1), ++ordinal) {
    if (!charge_string(tape_, key, budget_)) return false;
    const std::string_view name = tape_.string(key, buffer);
    const std::uint32_t found = rules.find(name, guess);
    if (found != kNone) {
      guess = rules.members[found].next_declared;
      if (rules.members[found].required_index != kNone) seen.add(rules.members[found].required_index);
    }
    bool is_evaluated = false;
    const bool good = check_member(id, rules, key, found, is_evaluated);
    if (is_evaluated && evaluated != nullptr) evaluated->add(ordinal);
    if (good) continue;
    ok = false;
    if (should_stop()) return false;
  }
  if (seen.complete()) return ok;
  for (std::uint32_t i = 0; i < rules.required.size() && !(!ok && should_stop()); ++i) {
    if (!seen.contains(i)) ok = fail(id, Keyword::required, value, i);
  }
  return false;
}

bool Validator::check_member(NodeId id, const ObjectRules& rules, TapeIndex key, std::uint32_t found,
                             bool& is_evaluated) {
  const TapeIndex value = key + 1;
  bool ok = true;
  const auto apply_schema = [&](NodeId node) {
    is_evaluated = true;
    if (!check(node, value, nullptr)) ok = false;
    return ok || !should_stop();
  };
  if (found != kNone && rules.members[found].node != kNone && !apply_schema(rules.members[found].node))
    return false;
  if (!rules.patterns.empty()) {
    std::string buffer;
    const std::string_view name = tape_.string(key, buffer);
    for (const auto& [pattern, node] : rules.patterns) {
      if (matches(pattern, name) && !apply_schema(node)) return false;
      if (stop_reason() != StopReason::none) return false;
    }
  }
  if (rules.property_names != kNone && !check(rules.property_names, key, nullptr)) {
    ok = false;
    if (should_stop()) return false;
  }
  if (is_evaluated || rules.additional == kNone) return ok;
  is_evaluated = true;
  // `additionalProperties: false` is reported as a forbidden member, not as a value that matches no schema.
  if (table_.nodes[rules.additional].types == 0) return fail(id, Keyword::additional_properties, value);
  return check(rules.additional, value, nullptr) && ok;
}

// minProperties and maxProperties count distinct keys. Repeated keys are searched for only if they could
// change the result.
bool Validator::check_member_count(NodeId id, const ObjectRules& rules, TapeIndex value) {
  std::size_t count = tape_.item_count(value);
  if (rules.min_members == 0 && count <= rules.max_members) return true;
  if (count >= rules.min_members) count = count_distinct_keys({tape_, value}, budget_);
  if (stop_reason() != StopReason::none) return false;
  if (count < rules.min_members)
    return fail(id, Keyword::min_properties, value, static_cast<std::uint32_t>(count));
  if (count > rules.max_members)
    return fail(id, Keyword::max_properties, value, static_cast<std::uint32_t>(count));
  return true;
}

bool Validator::check_dependencies(NodeId id, const ObjectRules& rules, TapeIndex value) {
  bool ok = true;
  for (std::uint32_t i = 0; i < rules.dependencies.size(); ++i) {
    const ObjectRules::Dependency& dependency = rules.dependencies[i];
    if (!has_member(value, dependency.name)) continue;
    for (std::uint32_t j = 0; j < dependency.required_names.size(); ++j) {
      if (has_member(value, dependency.required_names[j])) continue;
      if (stop_reason() != StopReason::none) return false;
      ok = fail(id, dependency.keyword, value, i, j);
      if (should_stop()) return false;
    }
  }
  return ok && stop_reason() == StopReason::none;
}

bool Validator::has_member(TapeIndex object, std::string_view name) {
  std::string buffer;
  for (TapeIndex key = object + 1; key != tape_.next(object); key = tape_.next(key + 1)) {
    if (!charge_string(tape_, key, budget_)) return false;
    if (tape_.string(key, buffer) == name) return true;
  }
  return false;
}

bool Validator::check_unevaluated(NodeId id, const Node& node, TapeIndex value, EvaluatedSet& evaluated) {
  const bool object = tape_.type(value) == Type::object;
  const NodeId schema = object ? node.unevaluated_properties : node.unevaluated_items;
  if (schema == kNone || (!object && tape_.type(value) != Type::array)) return true;
  const bool forbidden = table_.nodes[schema].types == 0;
  const Keyword keyword = object ? Keyword::unevaluated_properties : Keyword::unevaluated_items;
  bool ok = true;
  std::uint32_t ordinal = 0;
  for (TapeIndex item = value + 1; item != tape_.next(value); ++ordinal) {
    const TapeIndex item_value = object ? item + 1 : item;
    item = tape_.next(item_value);
    if (!budget_.spend(1)) return false;
    if (evaluated.contains(ordinal)) continue;
    if (!forbidden && check(schema, item_value, nullptr)) continue;
    if (forbidden) fail(id, keyword, item_value);
    ok = false;
    if (should_stop()) return false;
  }
  evaluated.add_all();
  return ok;
}

}  // namespace fairlead::json::schema
