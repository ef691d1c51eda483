#include "json/schema/validator.hpp"

#include <algorithm>

namespace fairlead::json::schema {

void EvaluatedSet::merge(const EvaluatedSet& other) {
  all_ |= other.all_;
  if (bits_.size() < other.bits_.size()) bits_.resize(other.bits_.size());
  for (std::size_t i = 0; i < other.bits_.size(); ++i) bits_[i] |= other.bits_[i];
}

Validator::Validator(const Table& table, std::size_t max_violations) noexcept
    : table_(table), budget_(table.options.max_validation_steps), violations_(max_violations) {}

bool Validator::accepts(std::string_view instance) {
  const Tape::Problem problem =
      tape_.read(instance, {.max_values = budget_.left(), .max_depth = table_.options.max_validation_depth});
  if (problem == Tape::Problem::none) {
    budget_.spend(tape_.size());
    return check(0, 0, nullptr) && stop_reason() == StopReason::none;
  }
  stop_reason_ = problem == Tape::Problem::too_deep          ? StopReason::depth
                 : problem == Tape::Problem::too_many_values ? StopReason::steps
                                                             : StopReason::not_json;
  return false;
}

bool Validator::is_integer(TapeIndex value) const {
  return !tape_.needs_decoding(value) || Decimal(tape_.text(value)).is_integer();
}

bool Validator::fail(const KeywordFailure& failure) {
  current_violations_->add({failure, std::nullopt});
  return false;
}

// Handles schemas without keywords other than `type` directly, because most schemas are such.
bool Validator::check(NodeId id, TapeIndex value, EvaluatedSet* evaluated) {
  const Node& node = table_.nodes[id];
  if (node.type_only) {
    if (has_type(node.types, value)) return true;
    return fail(id, node.types == 0 ? Keyword::none : Keyword::type, value);
  }
  return check_in_scope(id, value, evaluated);
}

bool Validator::check_in_scope(NodeId id, TapeIndex value, EvaluatedSet* evaluated) {
  const Node& node = table_.nodes[id];
  if (!budget_.spend(1)) return false;
  if (depth_ == table_.options.max_validation_depth) {
    stop_reason_ = StopReason::depth;
    return false;
  }
  ++depth_;
  const bool scope =
      !table_.dynamic_anchors.empty() && (dynamic_scope_.empty() || dynamic_scope_.back() != node.resource);
  if (scope) dynamic_scope_.push_back(node.resource);
  const bool ok = check_node(id, node, value, evaluated);
  if (scope) dynamic_scope_.pop_back();
  --depth_;
  return ok;
}

bool Validator::check_node(NodeId id, const Node& node, TapeIndex value, EvaluatedSet* evaluated) {
  // A value of the wrong type is not checked further.
  if (!has_type(node.types, value)) return fail(id, Keyword::type, value);
  if (node.unevaluated_items == kNone && node.unevaluated_properties == kNone)
    return check_typed(id, node, value, evaluated);
  EvaluatedSet own;
  if (!check_typed(id, node, value, &own) || !check_unevaluated(id, node, value, own)) return false;
  if (evaluated != nullptr) evaluated->merge(own);
  return true;
}

bool Validator::check_typed(NodeId id, const Node& node, TapeIndex value, EvaluatedSet* evaluated) {
  bool ok = true;
  const auto may_continue = [&ok, this](bool passed) {
    ok &= passed;
    return passed || !should_stop();
  };
  if (!may_continue(check_allowed_values(id, node, value))) return false;
  const Type type = tape_.type(value);
  if (type == Type::object && node.object_rules != kNone) {
    if (!may_continue(check_object(id, table_.objects[node.object_rules], value, evaluated))) return false;
  } else if (type == Type::string && node.string_rules != kNone) {
    if (!may_continue(check_string(id, table_.strings[node.string_rules], value))) return false;
  } else if (type == Type::number && node.number_rules != kNone) {
    if (!may_continue(check_number(id, table_.numbers[node.number_rules], value))) return false;
  } else if (type == Type::array && node.array_rules != kNone) {
    if (!may_continue(check_array(id, table_.arrays[node.array_rules], value, evaluated))) return false;
  }
  return check_applicators(id, node, value, evaluated) && ok;
}

}  // namespace fairlead::json::schema
