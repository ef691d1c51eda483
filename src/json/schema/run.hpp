// Run: one validation of one value. It notes what it finds as numbers; sentences are made of them afterwards
// (describe.cpp), so that a branch of anyOf that fails costs no text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/schema/equality.hpp"
#include "json/schema/table.hpp"
#include "json/schema/work.hpp"
#include "json/tape.hpp"

namespace fairlead::json::schema {

// What was wrong with one value: the keyword of the node that refused it. `a` and `b` are the keyword's own.
struct Fault {
  NodeId node;
  Keyword keyword;
  Index at;
  std::uint32_t a = 0;
  std::uint32_t b = 0;
};

struct Finding {
  Fault fault;
  // anyOf and oneOf: where the branch that came nearest failed, unless all branches just ask for other types.
  std::optional<Fault> nearest;
};

// The findings so far; the first needs no allocation.
class Findings {
 public:
  explicit Findings(std::size_t max) noexcept : max_(max) {}
  void add(const Finding& finding) {
    if (count_++ == 0) {
      first_ = finding;
    } else if (count_ <= max_) {
      more_.push_back(finding);
    }
  }
  bool full() const noexcept { return count_ >= max_; }
  bool empty() const noexcept { return count_ == 0; }
  const Finding& first() const noexcept { return first_; }
  const std::vector<Finding>& more() const noexcept { return more_; }

 private:
  std::size_t max_;
  std::size_t count_ = 0;
  Finding first_{};
  std::vector<Finding> more_;
};

// The members or elements of one value that some schema has judged: what unevaluatedProperties and
// unevaluatedItems leave alone.
class Marks {
 public:
  void mark_all() noexcept { all_ = true; }
  void mark(std::uint32_t ordinal) {
    if (ordinal / 64 >= bits_.size()) bits_.resize(ordinal / 64 + 1);
    bits_[ordinal / 64] |= std::uint64_t{1} << (ordinal % 64);
  }
  bool has(std::uint32_t ordinal) const noexcept {
    return all_ || (ordinal / 64 < bits_.size() && (bits_[ordinal / 64] >> (ordinal % 64) & 1) != 0);
  }
  void merge(const Marks& other);
  std::size_t words() const noexcept { return bits_.size(); }

 private:
  bool all_ = false;
  std::vector<std::uint64_t> bits_;
};

class Run {
 public:
  Run(const Table& table, std::size_t max_findings) noexcept;

  // Whether the value is valid; otherwise there are findings, or a limit was reached.
  bool accepts(std::string_view instance);

  const Findings& findings() const noexcept { return results_; }
  const Tape& tape() const noexcept { return tape_; }
  // Why there is no verdict, if there is none.
  enum class Stop : std::uint8_t { none, not_json, depth, steps };
  Stop stopped() const noexcept { return work_.exhausted() ? Stop::steps : stop_; }

 private:
  bool is_of(TypeSet types, Index at) const {
    const Type type = tape_.type(at);
    if ((types & bit_of(type)) != 0) return true;
    return type == Type::number && (types & kIntegerBit) != 0 && is_integer(at);
  }
  bool is_integer(Index at) const;
  bool check(NodeId id, Index at, Marks* marks);
  bool evaluate(NodeId id, Index at, Marks* marks);
  bool apply(NodeId id, const Node& node, Index at, Marks* marks);
  bool check_typed(NodeId id, const Node& node, Index at, Marks* marks);
  bool fail(const Fault& fault);
  bool fail(NodeId id, Keyword keyword, Index at, std::uint32_t a = 0, std::uint32_t b = 0) {
    return fail(Fault{id, keyword, at, a, b});
  }
  // After a failure: nothing more is wanted, or possible.
  bool done() const noexcept { return findings_->full() || stopped() != Stop::none; }

  // run_values.cpp
  bool check_values(NodeId id, const Node& node, Index at);
  bool is_one_of(const ValueRules& rules, std::uint32_t document, Index at);
  bool check_number(NodeId id, const NumberRules& rules, Index at);
  bool check_string(NodeId id, const StringRules& rules, Index at);
  bool matches(std::uint32_t pattern, std::string_view text);

  // run_containers.cpp
  bool check_array(NodeId id, const ArrayRules& rules, Index at, Marks* marks);
  bool check_elements(const ArrayRules& rules, Index at, Marks* marks);
  bool check_contains(NodeId id, const ArrayRules& rules, Index at, Marks* marks);
  bool check_object(NodeId id, const ObjectRules& rules, Index at, Marks* marks);
  bool check_members(NodeId id, const ObjectRules& rules, Index at, Marks* marks);
  bool check_member(NodeId id, const ObjectRules& rules, Index key, std::uint32_t found, bool& judged);
  bool check_member_count(NodeId id, const ObjectRules& rules, Index at);
  bool check_dependencies(NodeId id, const ObjectRules& rules, Index at);
  bool has_member(Index object, std::string_view name);
  bool check_unevaluated(NodeId id, const Node& node, Index at, Marks& marks);

  // run_applicators.cpp
  bool check_applicators(NodeId id, const Node& node, Index at, Marks* marks);
  bool check_applicator(NodeId id, const Applicator& applicator, Index at, Marks* marks);
  bool all_of(const std::vector<NodeId>& nodes, Index at, Marks* marks);
  bool any_of(NodeId id, const Applicator& applicator, Index at, Marks* marks);
  bool one_of(NodeId id, const Applicator& applicator, Index at, Marks* marks);
  bool condition(const Applicator& applicator, Index at, Marks* marks);
  bool branch(NodeId id, Index at, Marks* marks, Finding* why);
  NodeId dynamic_target(const Applicator& applicator);

  const Table& table_;
  Work work_;
  Stop stop_ = Stop::none;
  std::size_t depth_ = 0;
  Findings results_;
  Findings* findings_ = &results_;  // a branch has its own
  std::vector<std::uint32_t>
      scopes_;  // the resources entered, outermost first; only where there is a $dynamicRef
  Tape tape_;
};

}  // namespace fairlead::json::schema
