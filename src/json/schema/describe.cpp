#include "json/schema/describe.hpp"

#include "json/schema/names.hpp"

namespace fairlead::json::schema {

namespace {

constexpr std::size_t kListed = 12;  // values or names in one sentence

std::string with_pointer(const std::string& pointer, const std::string& what) {
  return pointer.empty() ? what : pointer + ": " + what;
}

// "a", "a or b", "a, b or c"
std::string joined(const std::vector<std::string>& parts, std::string_view last) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += i + 1 == parts.size() ? last : ", ";
    out += parts[i];
  }
  return out;
}

std::string names_of(TypeSet types) {
  std::vector<std::string> names;
  for (const Type type : {Type::object, Type::array, Type::string, Type::number, Type::boolean, Type::null}) {
    if ((types & bit_of(type)) != 0) names.emplace_back(name_of(type));
  }
  if ((types & kIntegerBit) != 0 && (types & bit_of(Type::number)) == 0) names.emplace_back("integer");
  return joined(names, " or ");
}

class Describer {
 public:
  Describer(const Table& table, const Run& run) noexcept : table_(table), tape_(run.tape()) {}

  SchemaViolation violation(const Finding& finding) const;

 private:
  std::string sentence(const Fault& fault) const;
  std::string about(const Fault& fault) const;
  std::string about_counts(const Fault& fault) const;
  std::string about_numbers(const Fault& fault) const;
  std::string about_branches(const Fault& fault) const;
  std::string wrong_type(TypeSet types, Index at) const;
  std::string listed_values(const Fault& fault) const;
  std::string not_allowed(const Fault& fault) const;

  const Location& location(const Fault& fault) const { return table_.locations[fault.node]; }
  const Tape& schema(const Fault& fault) const { return table_.documents[location(fault).document]->tape; }
  Index value_of(const Fault& fault, Keyword keyword) const {
    return schema(fault).member(location(fault).at, info(keyword).name);
  }
  // The keyword's value, as the schema has it.
  std::string given(const Fault& fault) const { return given(fault, fault.keyword); }
  std::string given(const Fault& fault, Keyword keyword) const {
    const Index at = value_of(fault, keyword);
    return at == kNowhere ? "1" : shortened(schema(fault).text(at));  // only minContains has a default
  }
  const ObjectRules& object(const Fault& fault) const {
    return table_.objects[table_.nodes[fault.node].object];
  }
  std::string schema_pointer(const Fault& fault) const;

  const Table& table_;
  const Tape& tape_;
};

SchemaViolation Describer::violation(const Finding& finding) const {
  const Fault& fault = finding.fault;
  SchemaViolation violation{.instance_pointer = tape_.pointer(fault.at),
                            .schema_pointer = schema_pointer(fault),
                            .keyword = std::string(info(fault.keyword).name),
                            .message = sentence(fault)};
  if (finding.nearest) violation.message += "; the nearest fails at " + sentence(*finding.nearest);
  return violation;
}

std::string Describer::schema_pointer(const Fault& fault) const {
  std::string pointer = schema(fault).pointer(location(fault).at);
  if (fault.keyword != Keyword::none) append_pointer_step(pointer, info(fault.keyword).name);
  if (location(fault).document == 0) return pointer;
  // Of a metaschema: they all have an $id.
  std::string_view uri = schema(fault).inside(schema(fault).member(0, "$id"));
  if (uri.ends_with('#')) uri.remove_suffix(1);
  return std::string(uri) + "#" + pointer;
}

std::string Describer::sentence(const Fault& fault) const {
  const std::string what = tape_.is_key(fault.at) ? "property name: " + about(fault) : about(fault);
  return with_pointer(tape_.pointer(fault.at), what);
}

std::string Describer::about(const Fault& fault) const {
  switch (fault.keyword) {
    case Keyword::none: return "no value is allowed here";
    case Keyword::type: return wrong_type(table_.nodes[fault.node].types, fault.at);
    case Keyword::enumeration: return "must be one of " + listed_values(fault);
    case Keyword::constant: return "must be " + given(fault);
    case Keyword::required: return "missing required property " + quoted(object(fault).required[fault.a]);
    case Keyword::additional_properties: return not_allowed(fault);
    case Keyword::unevaluated_properties: return "this property is not allowed";
    case Keyword::unevaluated_items: return "this item is not allowed";
    case Keyword::dependent_required:
    case Keyword::dependencies: {
      const auto& [_, name, needs] = object(fault).dependencies[fault.a];
      return "property " + quoted(name) + " needs property " + quoted(needs[fault.b]) + " beside it";
    }
    case Keyword::pattern: return "does not match the pattern " + given(fault);
    case Keyword::format: return "is not a valid " + std::string(name_of(static_cast<Format>(fault.a)));
    case Keyword::unique_items:
      return "items " + std::to_string(fault.a) + " and " + std::to_string(fault.b) + " are equal";
    case Keyword::negation: return "is what the schema says it must not be";
    case Keyword::any_of:
    case Keyword::one_of: return about_branches(fault);
    default: return about_counts(fault);
  }
}

std::string Describer::about_counts(const Fault& fault) const {
  const auto few = [&](std::string_view what, Keyword keyword) {
    return "too few " + std::string(what) + ": " + std::to_string(fault.a) + ", at least " +
           given(fault, keyword);
  };
  const auto many = [&](std::string_view what) {
    return "too many " + std::string(what) + ": " + std::to_string(fault.a) + ", at most " + given(fault);
  };
  switch (fault.keyword) {
    case Keyword::min_length:
      return "too short: " + std::to_string(fault.a) + " characters, at least " + given(fault);
    case Keyword::max_length:
      return "too long: " + std::to_string(fault.a) + " characters, at most " + given(fault);
    case Keyword::min_items: return few("items", Keyword::min_items);
    case Keyword::max_items: return many("items");
    case Keyword::contains: return few("items of the kind asked for", Keyword::min_contains);
    case Keyword::max_contains: return many("items of the kind limited");
    case Keyword::min_properties: return few("properties", Keyword::min_properties);
    case Keyword::max_properties: return many("properties");
    default: return about_numbers(fault);
  }
}

std::string Describer::about_numbers(const Fault& fault) const {
  const std::string value = shortened(tape_.text(fault.at));
  switch (fault.keyword) {
    case Keyword::minimum: return value + " is less than the minimum " + given(fault);
    case Keyword::maximum: return value + " is greater than the maximum " + given(fault);
    case Keyword::exclusive_minimum: return value + " is not greater than " + given(fault);
    case Keyword::exclusive_maximum: return value + " is not less than " + given(fault);
    default: return value + " is not a multiple of " + given(fault);
  }
}

std::string Describer::about_branches(const Fault& fault) const {
  if (fault.b != 0)
    return "matches alternatives " + std::to_string(fault.a) + " and " + std::to_string(fault.b) + " of " +
           std::string(info(fault.keyword).name) + ", but only one may match";
  if (fault.a != 0) return wrong_type(static_cast<TypeSet>(fault.a), fault.at);
  const std::uint32_t count = schema(fault).count(value_of(fault, fault.keyword));
  if (count == 1) return "does not match the only alternative of " + std::string(info(fault.keyword).name);
  return "matches none of the " + std::to_string(count) + " alternatives of " +
         std::string(info(fault.keyword).name);
}

std::string Describer::wrong_type(TypeSet types, Index at) const {
  const std::string_view got = name_of(tape_.type(at));
  if (tape_.type(at) == Type::number && (types & kIntegerBit) != 0)
    return "expected " + names_of(types) + ", got " + shortened(tape_.text(at));
  return "expected " + names_of(types) + ", got " + std::string(got);
}

std::string Describer::listed_values(const Fault& fault) const {
  const Tape& tape = schema(fault);
  const Index list = value_of(fault, Keyword::enumeration);
  std::vector<std::string> values;
  for (Index at = list + 1; at != tape.next(list); at = tape.next(at)) {
    if (values.size() == kListed)
      return joined(values, ", ") + " and " + std::to_string(tape.count(list) - kListed) + " more";
    values.push_back(shortened(tape.text(at)));
  }
  return values.empty() ? "nothing" : joined(values, " or ");
}

// With the names that are, so that whoever guessed one can do better.
std::string Describer::not_allowed(const Fault& fault) const {
  const ObjectRules& rules = object(fault);
  std::vector<std::string> names;
  std::uint32_t at = rules.first;
  for (std::size_t i = 0; i < rules.members.size(); ++i, at = rules.members[at].after) {
    if (rules.members[at].node != kNone) names.push_back(quoted(rules.members[at].name));
  }
  if (names.empty() || names.size() > kListed || !rules.patterns.empty())
    return "this property is not allowed";
  return "this property is not allowed, only " + joined(names, " and ");
}

std::string why_stopped(const Table& table, Run::Stop stop) {
  switch (stop) {
    case Run::Stop::depth:
      return limit_message("nested deeper than max_validation_depth", table.options.max_validation_depth);
    case Run::Stop::steps:
      return limit_message("validating takes more than max_validation_steps",
                           table.options.max_validation_steps);
    default: return "not valid JSON";
  }
}

}  // namespace

SchemaViolation describe_first(const Table& table, const Run& run) {
  if (run.stopped() == Run::Stop::none) return Describer(table, run).violation(run.findings().first());
  SchemaViolation violation;
  violation.message = why_stopped(table, run.stopped());
  violation.limit_reached = run.stopped() != Run::Stop::not_json;
  return violation;
}

std::vector<SchemaViolation> describe_all(const Table& table, const Run& run) {
  std::vector<SchemaViolation> violations{describe_first(table, run)};
  if (run.stopped() != Run::Stop::none) return violations;
  for (const Finding& finding : run.findings().more())
    violations.push_back(Describer(table, run).violation(finding));
  return violations;
}

}  // namespace fairlead::json::schema
