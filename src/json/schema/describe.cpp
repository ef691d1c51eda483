#include "json/schema/describe.hpp"

#include "json/schema/message_text.hpp"

namespace fairlead::json::schema {

namespace {

constexpr std::size_t kMaxListedItems = 12;  // allowed values or names that one message lists

std::string with_pointer(const std::string& pointer, const std::string& problem) {
  return pointer.empty() ? problem : pointer + ": " + problem;
}

// Joins the parts with commas, and the last two with `last`: "a", "a or b", "a, b or c".
std::string joined(const std::vector<std::string>& parts, std::string_view last) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += i + 1 == parts.size() ? last : ", ";
    out += parts[i];
  }
  return out;
}

std::string type_names(TypeSet types) {
  std::vector<std::string> names;
  for (const Type type : {Type::object, Type::array, Type::string, Type::number, Type::boolean, Type::null}) {
    if ((types & bit_of(type)) != 0) names.emplace_back(type_name(type));
  }
  if ((types & kIntegerBit) != 0 && (types & bit_of(Type::number)) == 0) names.emplace_back("integer");
  return joined(names, " or ");
}

class Describer {
 public:
  Describer(const Table& table, const Validator& validator) noexcept
      : table_(table), tape_(validator.tape()) {}

  SchemaViolation describe_violation(const Violation& found) const;

 private:
  std::string describe_with_pointer(const KeywordFailure& failure) const;
  std::string describe(const KeywordFailure& failure) const;
  std::string describe_count(const KeywordFailure& failure) const;
  std::string describe_number(const KeywordFailure& failure) const;
  std::string describe_branches(const KeywordFailure& failure) const;
  std::string describe_type(TypeSet types, TapeIndex entry) const;
  std::string listed_values(const KeywordFailure& failure) const;
  std::string describe_additional(const KeywordFailure& failure) const;

  const Location& location(const KeywordFailure& failure) const { return table_.locations[failure.node]; }
  const Tape& schema_tape(const KeywordFailure& failure) const {
    return table_.documents[location(failure).document]->tape;
  }
  TapeIndex value_of(const KeywordFailure& failure, Keyword keyword) const {
    return schema_tape(failure).member(location(failure).entry, keyword_info(keyword).name);
  }
  // Returns the value of the keyword as the schema spells it.
  std::string schema_value(const KeywordFailure& failure) const {
    return schema_value(failure, failure.keyword);
  }
  std::string schema_value(const KeywordFailure& failure, Keyword keyword) const {
    const TapeIndex entry = value_of(failure, keyword);
    return entry == kNoIndex
               ? "1"
               : shortened_json(schema_tape(failure).text(entry));  // only minContains has a default
  }
  const ObjectRules& object_rules(const KeywordFailure& failure) const {
    return table_.objects[table_.nodes[failure.node].object_rules];
  }
  std::string schema_pointer(const KeywordFailure& failure) const;

  const Table& table_;
  const Tape& tape_;
};

SchemaViolation Describer::describe_violation(const Violation& found) const {
  const KeywordFailure& failure = found.failure;
  SchemaViolation violation{.instance_pointer = tape_.pointer(failure.value),
                            .schema_pointer = schema_pointer(failure),
                            .keyword = std::string(keyword_info(failure.keyword).name),
                            .message = describe_with_pointer(failure)};
  if (found.closest) violation.message += "; the nearest fails at " + describe_with_pointer(*found.closest);
  return violation;
}

std::string Describer::schema_pointer(const KeywordFailure& failure) const {
  std::string pointer = schema_tape(failure).pointer(location(failure).entry);
  if (failure.keyword != Keyword::none) append_pointer_token(pointer, keyword_info(failure.keyword).name);
  if (location(failure).document == 0) return pointer;
  // The document is a metaschema; every metaschema has an $id.
  std::string_view uri = schema_tape(failure).unquoted(schema_tape(failure).member(0, "$id"));
  if (uri.ends_with('#')) uri.remove_suffix(1);
  return std::string(uri) + "#" + pointer;
}

std::string Describer::describe_with_pointer(const KeywordFailure& failure) const {
  const std::string problem =
      tape_.is_key(failure.value) ? "property name: " + describe(failure) : describe(failure);
  return with_pointer(tape_.pointer(failure.value), problem);
}

std::string Describer::describe(const KeywordFailure& failure) const {
  switch (failure.keyword) {
    case Keyword::none: return "no value is allowed here";
    case Keyword::type: return describe_type(table_.nodes[failure.node].types, failure.value);
    case Keyword::enumeration: return "must be one of " + listed_values(failure);
    case Keyword::constant: return "must be " + schema_value(failure);
    case Keyword::required:
      return "missing required property " + quoted(object_rules(failure).required[failure.a]);
    case Keyword::additional_properties: return describe_additional(failure);
    case Keyword::unevaluated_properties: return "this property is not allowed";
    case Keyword::unevaluated_items: return "this item is not allowed";
    case Keyword::dependent_required:
    case Keyword::dependencies: {
      const auto& [_, name, required_names] = object_rules(failure).dependencies[failure.a];
      return "property " + quoted(name) + " requires property " + quoted(required_names[failure.b]);
    }
    case Keyword::pattern: return "does not match the pattern " + schema_value(failure);
    case Keyword::format: return "is not a valid " + std::string(format_name(static_cast<Format>(failure.a)));
    case Keyword::unique_items:
      return "items " + std::to_string(failure.a) + " and " + std::to_string(failure.b) + " are equal";
    case Keyword::negation: return "must not match the schema of not";
    case Keyword::any_of:
    case Keyword::one_of: return describe_branches(failure);
    default: return describe_count(failure);
  }
}

std::string Describer::describe_count(const KeywordFailure& failure) const {
  const auto too_few = [&](std::string_view counted, Keyword keyword) {
    return "too few " + std::string(counted) + ": " + std::to_string(failure.a) + ", at least " +
           schema_value(failure, keyword);
  };
  const auto too_many = [&](std::string_view counted) {
    return "too many " + std::string(counted) + ": " + std::to_string(failure.a) + ", at most " +
           schema_value(failure);
  };
  switch (failure.keyword) {
    case Keyword::min_length:
      return "too short: " + std::to_string(failure.a) + " characters, at least " + schema_value(failure);
    case Keyword::max_length:
      return "too long: " + std::to_string(failure.a) + " characters, at most " + schema_value(failure);
    case Keyword::min_items: return too_few("items", Keyword::min_items);
    case Keyword::max_items: return too_many("items");
    case Keyword::contains: return too_few("items that match contains", Keyword::min_contains);
    case Keyword::max_contains: return too_many("items that match contains");
    case Keyword::min_properties: return too_few("properties", Keyword::min_properties);
    case Keyword::max_properties: return too_many("properties");
    default: return describe_number(failure);
  }
}

std::string Describer::describe_number(const KeywordFailure& failure) const {
  const std::string value = shortened_json(tape_.text(failure.value));
  switch (failure.keyword) {
    case Keyword::minimum: return value + " is less than the minimum " + schema_value(failure);
    case Keyword::maximum: return value + " is greater than the maximum " + schema_value(failure);
    case Keyword::exclusive_minimum: return value + " is not greater than " + schema_value(failure);
    case Keyword::exclusive_maximum: return value + " is not less than " + schema_value(failure);
    default: return value + " is not a multiple of " + schema_value(failure);
  }
}

std::string Describer::describe_branches(const KeywordFailure& failure) const {
  if (failure.b != 0)
    return "matches alternatives " + std::to_string(failure.a) + " and " + std::to_string(failure.b) +
           " of " + std::string(keyword_info(failure.keyword).name) + ", but only one may match";
  if (failure.a != 0) return describe_type(static_cast<TypeSet>(failure.a), failure.value);
  const std::uint32_t count = schema_tape(failure).item_count(value_of(failure, failure.keyword));
  if (count == 1)
    return "does not match the only alternative of " + std::string(keyword_info(failure.keyword).name);
  return "matches none of the " + std::to_string(count) + " alternatives of " +
         std::string(keyword_info(failure.keyword).name);
}

std::string Describer::describe_type(TypeSet types, TapeIndex entry) const {
  const std::string_view got = type_name(tape_.type(entry));
  if (tape_.type(entry) == Type::number && (types & kIntegerBit) != 0)
    return "expected " + type_names(types) + ", got " + shortened_json(tape_.text(entry));
  return "expected " + type_names(types) + ", got " + std::string(got);
}

std::string Describer::listed_values(const KeywordFailure& failure) const {
  const Tape& tape = schema_tape(failure);
  const TapeIndex list = value_of(failure, Keyword::enumeration);
  std::vector<std::string> values;
  for (TapeIndex entry = list + 1; entry != tape.next(list); entry = tape.next(entry)) {
    if (values.size() == kMaxListedItems)
      return joined(values, ", ") + " and " + std::to_string(tape.item_count(list) - kMaxListedItems) +
             " more";
    values.push_back(shortened_json(tape.text(entry)));
  }
  return values.empty() ? "nothing" : joined(values, " or ");
}

// Lists the allowed names if they are few, so that a caller that guessed a name can correct it.
std::string Describer::describe_additional(const KeywordFailure& failure) const {
  const ObjectRules& rules = object_rules(failure);
  std::vector<std::string> names;
  std::uint32_t member = rules.first_declared;
  for (std::size_t i = 0; i < rules.members.size(); ++i, member = rules.members[member].next_declared) {
    if (rules.members[member].node != kNone) names.push_back(quoted(rules.members[member].name));
  }
  if (names.empty() || names.size() > kMaxListedItems || !rules.patterns.empty())
    return "this property is not allowed";
  return "this property is not allowed, only " + joined(names, " and ");
}

std::string stop_message(const Table& table, Validator::StopReason stop) {
  switch (stop) {
    case Validator::StopReason::depth:
      return limit_message("nested deeper than max_validation_depth", table.options.max_validation_depth);
    case Validator::StopReason::steps:
      return limit_message("validating takes more than max_validation_steps",
                           table.options.max_validation_steps);
    default: return "not valid JSON";
  }
}

}  // namespace

SchemaViolation describe_first(const Table& table, const Validator& validator) {
  if (validator.stop_reason() == Validator::StopReason::none)
    return Describer(table, validator).describe_violation(validator.violations().first());
  SchemaViolation violation;
  violation.message = stop_message(table, validator.stop_reason());
  violation.limit_reached = validator.stop_reason() != Validator::StopReason::not_json;
  return violation;
}

std::vector<SchemaViolation> describe_all(const Table& table, const Validator& validator) {
  std::vector<SchemaViolation> violations{describe_first(table, validator)};
  if (validator.stop_reason() != Validator::StopReason::none) return violations;
  for (const Violation& found : validator.violations().more())
    violations.push_back(Describer(table, validator).describe_violation(found));
  return violations;
}

}  // namespace fairlead::json::schema
