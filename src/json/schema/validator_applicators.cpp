// Checks the keywords that apply other schemas to the same value.
#include <algorithm>

#include "json/schema/validator.hpp"

namespace fairlead::json::schema {

namespace {

// Chooses the violation to report when all branches of anyOf or oneOf failed. If all of them failed because
// of the type of the value, it is the types that they accept. Otherwise it is the failure furthest into the
// value, because the branch that failed there is the closest match.
class ClosestBranch {
 public:
  ClosestBranch(const Table& table, TapeIndex value) noexcept : table_(table), value_(value) {}

  void add(const Violation& violation) noexcept {
    const KeywordFailure& failure = violation.closest ? *violation.closest : violation.failure;
    if (failure.value == value_ && failure.keyword == Keyword::type) {
      types_ |= table_.nodes[failure.node].types;
    } else if (failure.value == value_ && failed_by_type(failure)) {
      types_ |= static_cast<TypeSet>(failure.a);
    } else {
      only_types_ = false;
      if (failure.value > value_ && (!furthest_ || failure.value > furthest_->value)) furthest_ = failure;
    }
  }

  Violation violation(NodeId id, Keyword keyword) const noexcept {
    return {{id, keyword, value_, only_types_ ? types_ : 0u}, only_types_ ? std::nullopt : furthest_};
  }

 private:
  static bool failed_by_type(const KeywordFailure& failure) noexcept {
    return (failure.keyword == Keyword::any_of || failure.keyword == Keyword::one_of) && failure.a != 0 &&
           failure.b == 0;
  }

  const Table& table_;
  TapeIndex value_;
  TypeSet types_ = 0;
  bool only_types_ = true;
  std::optional<KeywordFailure> furthest_;
};

}  // namespace

bool Validator::check_applicators(NodeId id, const Node& node, TapeIndex value, EvaluatedSet* evaluated) {
  bool ok = true;
  for (std::uint32_t i = node.first_applicator; i != node.last_applicator; ++i) {
    if (check_applicator(id, table_.applicators[i], value, evaluated)) continue;
    ok = false;
    if (should_stop()) return false;
  }
  return ok;
}

bool Validator::check_applicator(NodeId id, const Applicator& applicator, TapeIndex value,
                                 EvaluatedSet* evaluated) {
  switch (applicator.keyword) {
    case Keyword::ref:
    case Keyword::all_of: return check_all_of(applicator.nodes, value, evaluated);
    case Keyword::dynamic_ref: return check(dynamic_target(applicator), value, evaluated);
    case Keyword::any_of: return check_any_of(id, applicator, value, evaluated);
    case Keyword::one_of: return check_one_of(id, applicator, value, evaluated);
    case Keyword::negation:
      if (!check_branch(applicator.nodes.front(), value, nullptr, nullptr))
        return stop_reason() == StopReason::none;
      return fail(id, Keyword::negation, value);
    case Keyword::if_branch: return check_condition(applicator, value, evaluated);
    default:  // dependentSchemas, and dependencies
      if (tape_.type(value) != Type::object || !has_member(value, applicator.name))
        return stop_reason() == StopReason::none;
      return check_all_of(applicator.nodes, value, evaluated);
  }
}

bool Validator::check_all_of(const std::vector<NodeId>& nodes, TapeIndex value, EvaluatedSet* evaluated) {
  bool ok = true;
  for (const NodeId id : nodes) {
    if (check(id, value, evaluated)) continue;
    ok = false;
    if (should_stop()) return false;
  }
  return ok;
}

// Returns whether the value matches the schema of a branch. Does not add to the violations of the validation:
// a failed branch only sets `violation`, unless it is null. Members and elements that a failed branch
// evaluated are not added to `evaluated`.
bool Validator::check_branch(NodeId id, TapeIndex value, EvaluatedSet* evaluated, Violation* violation) {
  if (!budget_.spend(1)) return false;
  ViolationList own(1);
  ViolationList* const outer = std::exchange(current_violations_, &own);
  EvaluatedSet branch_evaluated;
  const bool ok = check(id, value, evaluated != nullptr ? &branch_evaluated : nullptr) &&
                  stop_reason() == StopReason::none;
  current_violations_ = outer;
  if (ok && evaluated != nullptr) {
    budget_.spend(branch_evaluated.word_count());
    evaluated->merge(branch_evaluated);
  }
  if (!ok && violation != nullptr) *violation = own.first();
  return ok;
}

bool Validator::check_any_of(NodeId id, const Applicator& applicator, TapeIndex value,
                             EvaluatedSet* evaluated) {
  if (evaluated == nullptr && has_type(applicator.types, value)) return true;
  ClosestBranch closest(table_, value);
  Violation violation{};
  bool matched = false;
  for (const NodeId node : applicator.nodes) {
    if (check_branch(node, value, evaluated, &violation)) {
      matched = true;
      if (evaluated == nullptr) return true;  // further branches could only add to `evaluated`
    } else {
      if (stop_reason() != StopReason::none) return false;
      closest.add(violation);
    }
  }
  if (!matched) current_violations_->add(closest.violation(id, Keyword::any_of));
  return matched;
}

bool Validator::check_one_of(NodeId id, const Applicator& applicator, TapeIndex value,
                             EvaluatedSet* evaluated) {
  ClosestBranch closest(table_, value);
  Violation violation{};
  std::uint32_t matched = kNone;
  for (std::uint32_t i = 0; i < applicator.nodes.size(); ++i) {
    if (!check_branch(applicator.nodes[i], value, evaluated, &violation)) {
      if (stop_reason() != StopReason::none) return false;
      closest.add(violation);
    } else if (matched != kNone) {
      return fail(id, Keyword::one_of, value, matched, i);
    } else {
      matched = i;
    }
  }
  if (matched == kNone) current_violations_->add(closest.violation(id, Keyword::one_of));
  return matched != kNone;
}

bool Validator::check_condition(const Applicator& applicator, TapeIndex value, EvaluatedSet* evaluated) {
  const bool holds = check_branch(applicator.nodes[0], value, evaluated, nullptr);
  if (stop_reason() != StopReason::none) return false;
  const NodeId then = applicator.nodes[holds ? 1 : 2];
  return then == kNone || check(then, value, evaluated);
}

// Returns the target of a $dynamicRef: the node of the $dynamicAnchor in the outermost resource of the
// dynamic scope that has such an anchor. Returns the static target if no resource has one, or if the static
// target is not a $dynamicAnchor.
NodeId Validator::dynamic_target(const Applicator& applicator) {
  if (applicator.dynamic_name == kNone) return applicator.nodes.front();
  const auto& anchors = table_.dynamic_anchors[applicator.dynamic_name];
  budget_.spend(dynamic_scope_.size());
  for (const std::uint32_t scope : dynamic_scope_) {
    const auto found = std::ranges::lower_bound(anchors, scope, {}, &std::pair<std::uint32_t, NodeId>::first);
    if (found != anchors.end() && found->first == scope) return found->second;
  }
  return applicator.nodes.front();
}

}  // namespace fairlead::json::schema
