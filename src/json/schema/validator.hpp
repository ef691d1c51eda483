// Validator: one validation of one value. It records violations without text; describe.cpp composes the
// messages afterwards, so that a failed branch of anyOf does not cost the time for a message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/schema/equality.hpp"
#include "json/schema/step_budget.hpp"
#include "json/schema/table.hpp"
#include "json/tape.hpp"

namespace fairlead::json::schema {

// `value` (an entry of the validator's tape) violates `keyword` of `node`. The meaning of `a` and `b` depends
// on the keyword; Describer in describe.cpp reads them.
struct KeywordFailure {
  NodeId node;
  Keyword keyword;
  TapeIndex value;
  std::uint32_t a = 0;
  std::uint32_t b = 0;
};

struct Violation {
  KeywordFailure failure;
  // Of anyOf and oneOf: the failure of the branch that came closest. nullopt if every branch failed because
  // of the type of the value.
  std::optional<KeywordFailure> closest;
};

// The violations found so far, at most `max`; further ones are dropped. The first one needs no allocation.
class ViolationList {
 public:
  explicit ViolationList(std::size_t max) noexcept : max_(max) {}
  void add(const Violation& violation) {
    if (count_++ == 0) {
      first_ = violation;
    } else if (count_ <= max_) {
      more_.push_back(violation);
    }
  }
  bool full() const noexcept { return count_ >= max_; }
  bool empty() const noexcept { return count_ == 0; }
  const Violation& first() const noexcept { return first_; }
  // Returns the violations after the first one.
  const std::vector<Violation>& more() const noexcept { return more_; }

 private:
  std::size_t max_;
  std::size_t count_ = 0;
  Violation first_{};
  std::vector<Violation> more_;
};

// The members or elements of one value that a schema has evaluated. unevaluatedProperties and
// unevaluatedItems apply to the others.
class EvaluatedSet {
 public:
  void add_all() noexcept { all_ = true; }
  void add(std::uint32_t ordinal) {
    if (ordinal / 64 >= bits_.size()) bits_.resize(ordinal / 64 + 1);
    bits_[ordinal / 64] |= std::uint64_t{1} << (ordinal % 64);
  }
  bool contains(std::uint32_t ordinal) const noexcept {
    return all_ || (ordinal / 64 < bits_.size() && (bits_[ordinal / 64] >> (ordinal % 64) & 1) != 0);
  }
  void merge(const EvaluatedSet& other);
  std::size_t word_count() const noexcept { return bits_.size(); }

 private:
  bool all_ = false;
  std::vector<std::uint64_t> bits_;
};

class Validator {
 public:
  Validator(const Table& table, std::size_t max_violations) noexcept;

  // Returns whether the value is valid. After false, there are violations, or stop_reason() is not `none`.
  bool accepts(std::string_view instance);

  const ViolationList& violations() const noexcept { return violations_; }
  const Tape& tape() const noexcept { return tape_; }
  // Why the validation ended without a result; `none` if it has one.
  enum class StopReason : std::uint8_t { none, not_json, depth, steps };
  StopReason stop_reason() const noexcept { return budget_.exhausted() ? StopReason::steps : stop_reason_; }

 private:
  // Returns whether `types` contains the type of the value.
  bool has_type(TypeSet types, TapeIndex value) const {
    const Type type = tape_.type(value);
    if ((types & bit_of(type)) != 0) return true;
    return type == Type::number && (types & kIntegerBit) != 0 && is_integer(value);
  }
  bool is_integer(TapeIndex value) const;
  // The following functions return whether `value`, an entry of tape_, is valid, and record violations. They
  // add the members or elements that the schema evaluates to `evaluated`, unless it is null.
  //
  // Checks the value against a schema.
  bool check(NodeId id, TapeIndex value, EvaluatedSet* evaluated);
  // The same for a schema with keywords other than `type`: checks the depth and tracks the dynamic scope.
  bool check_in_scope(NodeId id, TapeIndex value, EvaluatedSet* evaluated);
  // Checks the type of the value, all other keywords, and the unevaluated members or elements.
  bool check_node(NodeId id, const Node& node, TapeIndex value, EvaluatedSet* evaluated);
  // Checks the keywords other than `type`, `unevaluatedProperties` and `unevaluatedItems`.
  bool check_typed(NodeId id, const Node& node, TapeIndex value, EvaluatedSet* evaluated);
  // Record a violation and return false.
  bool fail(const KeywordFailure& failure);
  bool fail(NodeId id, Keyword keyword, TapeIndex value, std::uint32_t a = 0, std::uint32_t b = 0) {
    return fail(KeywordFailure{id, keyword, value, a, b});
  }
  // Returns whether to stop after a failure: there are enough violations, or the validation cannot continue.
  bool should_stop() const noexcept {
    return current_violations_->full() || stop_reason() != StopReason::none;
  }

  // Defined in validator_values.cpp.
  bool check_allowed_values(NodeId id, const Node& node, TapeIndex value);
  bool is_one_of(const AllowedValues& rules, std::uint32_t document, TapeIndex value);
  bool check_number(NodeId id, const NumberRules& rules, TapeIndex value);
  bool check_string(NodeId id, const StringRules& rules, TapeIndex value);
  bool matches(std::uint32_t pattern, std::string_view text);

  // Defined in validator_containers.cpp.
  bool check_array(NodeId id, const ArrayRules& rules, TapeIndex value, EvaluatedSet* evaluated);
  bool check_elements(const ArrayRules& rules, TapeIndex value, EvaluatedSet* evaluated);
  bool check_contains(NodeId id, const ArrayRules& rules, TapeIndex value, EvaluatedSet* evaluated);
  bool check_object(NodeId id, const ObjectRules& rules, TapeIndex value, EvaluatedSet* evaluated);
  bool check_members(NodeId id, const ObjectRules& rules, TapeIndex value, EvaluatedSet* evaluated);
  bool check_member(NodeId id, const ObjectRules& rules, TapeIndex key, std::uint32_t found,
                    bool& is_evaluated);
  bool check_member_count(NodeId id, const ObjectRules& rules, TapeIndex value);
  bool check_dependencies(NodeId id, const ObjectRules& rules, TapeIndex value);
  bool has_member(TapeIndex object, std::string_view name);
  bool check_unevaluated(NodeId id, const Node& node, TapeIndex value, EvaluatedSet& evaluated);

  // Defined in validator_applicators.cpp.
  bool check_applicators(NodeId id, const Node& node, TapeIndex value, EvaluatedSet* evaluated);
  bool check_applicator(NodeId id, const Applicator& applicator, TapeIndex value, EvaluatedSet* evaluated);
  bool check_all_of(const std::vector<NodeId>& nodes, TapeIndex value, EvaluatedSet* evaluated);
  bool check_any_of(NodeId id, const Applicator& applicator, TapeIndex value, EvaluatedSet* evaluated);
  bool check_one_of(NodeId id, const Applicator& applicator, TapeIndex value, EvaluatedSet* evaluated);
  bool check_condition(const Applicator& applicator, TapeIndex value, EvaluatedSet* evaluated);
  bool check_branch(NodeId id, TapeIndex value, EvaluatedSet* evaluated, Violation* violation);
  NodeId dynamic_target(const Applicator& applicator);

  const Table& table_;
  StepBudget budget_;
  StopReason stop_reason_ = StopReason::none;
  std::size_t depth_ = 0;
  ViolationList violations_;
  ViolationList* current_violations_ = &violations_;  // while a branch of anyOf etc. is applied: its own list
  // The dynamic scope: the schema resources being applied, outermost first. Empty if the schema has no
  // $dynamicRef.
  std::vector<std::uint32_t> dynamic_scope_;
  Tape tape_;
};

}  // namespace fairlead::json::schema
