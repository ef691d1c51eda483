// Keywords that apply other schemas to the same value.
#include <algorithm>

#include "json/schema/run.hpp"

namespace fairlead::json::schema {

namespace {

// Of several branches that all failed, what to tell: when all just want other types, which; else the failure
// that lies furthest on in the value, which is that of the branch that fitted longest.
class Nearest {
 public:
  Nearest(const Table& table, Index at) noexcept : table_(table), at_(at) {}

  void add(const Finding& why) noexcept {
    const Fault& fault = why.nearest ? *why.nearest : why.fault;
    if (fault.at == at_ && fault.keyword == Keyword::type) {
      types_ |= table_.nodes[fault.node].types;
    } else if (fault.at == at_ && wants_types(fault)) {
      types_ |= static_cast<TypeSet>(fault.a);
    } else {
      only_types_ = false;
      if (fault.at > at_ && (!furthest_ || fault.at > furthest_->at)) furthest_ = fault;
    }
  }

  Finding finding(NodeId id, Keyword keyword) const noexcept {
    return {{id, keyword, at_, only_types_ ? types_ : 0u}, only_types_ ? std::nullopt : furthest_};
  }

 private:
  static bool wants_types(const Fault& fault) noexcept {
    return (fault.keyword == Keyword::any_of || fault.keyword == Keyword::one_of) && fault.a != 0 &&
           fault.b == 0;
  }

  const Table& table_;
  Index at_;
  TypeSet types_ = 0;
  bool only_types_ = true;
  std::optional<Fault> furthest_;
};

}  // namespace

bool Run::check_applicators(NodeId id, const Node& node, Index at, Marks* marks) {
  bool ok = true;
  for (std::uint32_t i = node.first_applicator; i != node.last_applicator; ++i) {
    if (check_applicator(id, table_.applicators[i], at, marks)) continue;
    ok = false;
    if (done()) return false;
  }
  return ok;
}

bool Run::check_applicator(NodeId id, const Applicator& applicator, Index at, Marks* marks) {
  switch (applicator.keyword) {
    case Keyword::ref:
    case Keyword::all_of: return all_of(applicator.nodes, at, marks);
    case Keyword::dynamic_ref: return check(dynamic_target(applicator), at, marks);
    case Keyword::any_of: return any_of(id, applicator, at, marks);
    case Keyword::one_of: return one_of(id, applicator, at, marks);
    case Keyword::negation:
      if (!branch(applicator.nodes.front(), at, nullptr, nullptr)) return stopped() == Stop::none;
      return fail(id, Keyword::negation, at);
    case Keyword::if_branch: return condition(applicator, at, marks);
    default:  // dependentSchemas, and dependencies
      if (tape_.type(at) != Type::object || !has_member(at, applicator.name)) return stopped() == Stop::none;
      return all_of(applicator.nodes, at, marks);
  }
}

bool Run::all_of(const std::vector<NodeId>& nodes, Index at, Marks* marks) {
  bool ok = true;
  for (const NodeId id : nodes) {
    if (check(id, at, marks)) continue;
    ok = false;
    if (done()) return false;
  }
  return ok;
}

// Whether the value fits, with findings of its own: `why` it does not. What a branch that fails has marked is
// forgotten.
bool Run::branch(NodeId id, Index at, Marks* marks, Finding* why) {
  if (!work_.spend(1)) return false;
  Findings own(1);
  Findings* const around = std::exchange(findings_, &own);
  Marks marked;
  const bool ok = check(id, at, marks != nullptr ? &marked : nullptr) && stopped() == Stop::none;
  findings_ = around;
  if (ok && marks != nullptr) {
    work_.spend(marked.words());
    marks->merge(marked);
  }
  if (!ok && why != nullptr) *why = own.first();
  return ok;
}

bool Run::any_of(NodeId id, const Applicator& applicator, Index at, Marks* marks) {
  if (marks == nullptr && is_of(applicator.types, at)) return true;
  Nearest nearest(table_, at);
  Finding why{};
  bool matched = false;
  for (const NodeId node : applicator.nodes) {
    if (branch(node, at, marks, &why)) {
      matched = true;
      if (marks == nullptr) return true;  // others would only add marks
    } else {
      if (stopped() != Stop::none) return false;
      nearest.add(why);
    }
  }
  if (!matched) findings_->add(nearest.finding(id, Keyword::any_of));
  return matched;
}

bool Run::one_of(NodeId id, const Applicator& applicator, Index at, Marks* marks) {
  Nearest nearest(table_, at);
  Finding why{};
  std::uint32_t matched = kNone;
  for (std::uint32_t i = 0; i < applicator.nodes.size(); ++i) {
    if (!branch(applicator.nodes[i], at, marks, &why)) {
      if (stopped() != Stop::none) return false;
      nearest.add(why);
    } else if (matched != kNone) {
      return fail(id, Keyword::one_of, at, matched, i);
    } else {
      matched = i;
    }
  }
  if (matched == kNone) findings_->add(nearest.finding(id, Keyword::one_of));
  return matched != kNone;
}

bool Run::condition(const Applicator& applicator, Index at, Marks* marks) {
  const bool holds = branch(applicator.nodes[0], at, marks, nullptr);
  if (stopped() != Stop::none) return false;
  const NodeId then = applicator.nodes[holds ? 1 : 2];
  return then == kNone || check(then, at, marks);
}

// The outermost resource entered that has such an anchor; the target as written where none has, or where it
// was not found by a $dynamicAnchor.
NodeId Run::dynamic_target(const Applicator& applicator) {
  if (applicator.dynamic_name == kNone) return applicator.nodes.front();
  const auto& anchors = table_.dynamic_anchors[applicator.dynamic_name];
  work_.spend(scopes_.size());
  for (const std::uint32_t scope : scopes_) {
    const auto found = std::ranges::lower_bound(anchors, scope, {}, &std::pair<std::uint32_t, NodeId>::first);
    if (found != anchors.end() && found->first == scope) return found->second;
  }
  return applicator.nodes.front();
}

}  // namespace fairlead::json::schema
