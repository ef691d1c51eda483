#include "json/schema/run.hpp"

#include <algorithm>

namespace fairlead::json::schema {

void Marks::merge(const Marks& other) {
  all_ |= other.all_;
  if (bits_.size() < other.bits_.size()) bits_.resize(other.bits_.size());
  for (std::size_t i = 0; i < other.bits_.size(); ++i) bits_[i] |= other.bits_[i];
}

Run::Run(const Table& table, std::size_t max_findings) noexcept
    : table_(table), work_(table.options.max_validation_steps), results_(max_findings) {}

bool Run::accepts(std::string_view instance) {
  const Tape::Problem problem =
      tape_.read(instance, {.max_values = work_.left(), .max_depth = table_.options.max_validation_depth});
  if (problem == Tape::Problem::none) {
    work_.spend(tape_.size());
    return check(0, 0, nullptr) && stopped() == Stop::none;
  }
  stop_ = problem == Tape::Problem::too_deep   ? Stop::depth
          : problem == Tape::Problem::too_many ? Stop::steps
                                               : Stop::not_json;
  return false;
}

bool Run::is_integer(Index at) const {
  return !tape_.special(at) || Decimal(tape_.text(at)).is_integer();
}

bool Run::fail(const Fault& fault) {
  findings_->add({fault, std::nullopt});
  return false;
}

// Most schemas only ask for a type: those need no more than this.
bool Run::check(NodeId id, Index at, Marks* marks) {
  const Node& node = table_.nodes[id];
  if (node.plain) {
    if (is_of(node.types, at)) return true;
    return fail(id, node.types == 0 ? Keyword::none : Keyword::type, at);
  }
  return evaluate(id, at, marks);
}

bool Run::evaluate(NodeId id, Index at, Marks* marks) {
  const Node& node = table_.nodes[id];
  if (!work_.spend(1)) return false;
  if (depth_ == table_.options.max_validation_depth) {
    stop_ = Stop::depth;
    return false;
  }
  ++depth_;
  const bool scope = !table_.dynamic_anchors.empty() && (scopes_.empty() || scopes_.back() != node.resource);
  if (scope) scopes_.push_back(node.resource);
  const bool ok = apply(id, node, at, marks);
  if (scope) scopes_.pop_back();
  --depth_;
  return ok;
}

bool Run::apply(NodeId id, const Node& node, Index at, Marks* marks) {
  // What is of the wrong type needs no further complaints.
  if (!is_of(node.types, at)) return fail(id, Keyword::type, at);
  if (node.unevaluated_items == kNone && node.unevaluated_properties == kNone)
    return check_typed(id, node, at, marks);
  Marks own;
  if (!check_typed(id, node, at, &own) || !check_unevaluated(id, node, at, own)) return false;
  if (marks != nullptr) marks->merge(own);
  return true;
}

bool Run::check_typed(NodeId id, const Node& node, Index at, Marks* marks) {
  bool ok = true;
  const auto go_on = [&ok, this](bool passed) {
    ok &= passed;
    return passed || !done();
  };
  if (!go_on(check_values(id, node, at))) return false;
  const Type type = tape_.type(at);
  if (type == Type::object && node.object != kNone) {
    if (!go_on(check_object(id, table_.objects[node.object], at, marks))) return false;
  } else if (type == Type::string && node.string != kNone) {
    if (!go_on(check_string(id, table_.strings[node.string], at))) return false;
  } else if (type == Type::number && node.number != kNone) {
    if (!go_on(check_number(id, table_.numbers[node.number], at))) return false;
  } else if (type == Type::array && node.array != kNone) {
    if (!go_on(check_array(id, table_.arrays[node.array], at, marks))) return false;
  }
  return check_applicators(id, node, at, marks) && ok;
}

}  // namespace fairlead::json::schema
