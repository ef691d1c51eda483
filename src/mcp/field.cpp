#include "fairlead/mcp/field.hpp"

#include <algorithm>

#include "fairlead/json/schema.hpp"
#include "fairlead/json/view.hpp"

namespace fairlead::mcp {

// ---- metadata -------------------------------------------------------------------------------------------

bool FieldSchema::has_keyword(std::string_view keyword) const noexcept {
  return std::ranges::any_of(keywords_, [&](const auto& entry) { return entry.first == keyword; });
}

void FieldSchema::write_keywords(json::Writer& out) const {
  for (const auto& [keyword, value] : keywords_) out.key(keyword).raw(value);
}

FieldSchema FieldSchema::element_schema() const {
  FieldSchema elements;
  elements.labels_ = labels_;
  return elements;
}

void FieldSchema::set_json(std::string_view keyword, std::string json) {
  std::erase_if(keywords_, [&](const auto& entry) { return entry.first == keyword; });
  keywords_.emplace_back(keyword, std::move(json));
}

void FieldSchema::set_string(std::string_view keyword, std::string_view text) {
  set_json(keyword, std::string(json::string(text).text()));
}

void FieldSchema::append_json(std::string_view keyword, const std::string& element) {
  const auto found =
      std::ranges::find_if(keywords_, [&](const auto& entry) { return entry.first == keyword; });
  if (found == keywords_.end()) return set_json(keyword, "[" + element + "]");
  found->second.back() = ',';
  found->second += element + "]";
}

void FieldSchema::add_label(std::string enumerator, std::string label) {
  labels_.emplace_back(std::move(enumerator), std::move(label));
}

// ---- checks ---------------------------------------------------------------------------------------------

namespace typed {

namespace {

// A lower-bound keyword and an upper-bound keyword of the same property.
struct Bounds {
  const char* lower;
  const char* upper;
  bool may_be_equal;
};
constexpr Bounds kBounds[] = {
    {"minimum", "maximum", true},           {"minimum", "exclusiveMaximum", false},
    {"exclusiveMinimum", "maximum", false}, {"exclusiveMinimum", "exclusiveMaximum", false},
    {"minLength", "maxLength", true},       {"minItems", "maxItems", true},
};

std::string bounds_problem(json::View schema) {
  for (const Bounds& bounds : kBounds) {
    const json::View lower = schema[bounds.lower];
    const json::View upper = schema[bounds.upper];
    if (lower.absent() || upper.absent()) continue;
    const double min = lower.as_double().value_or(0);
    const double max = upper.as_double().value_or(0);
    if (min < max || (bounds.may_be_equal && min == max)) continue;
    return std::string(bounds.lower) + " " + std::string(lower.text()) + " and " + bounds.upper + " " +
           std::string(upper.text()) + " exclude every value";
  }
  return {};
}

// Returns the problem of a default or an example; empty if it is valid.
std::string value_problem(const json::Schema& schema, const char* kind, json::View value) {
  const auto violation = schema.validate(value.text());
  if (!violation) return {};
  return std::string(kind) + " " + std::string(value.text()) + " is invalid: " + violation->message;
}

// Returns the problem of the keywords of a schema, without the schemas inside it; empty if there is none.
std::string keyword_problem(json::View schema) {
  const Result<json::Schema> compiled = json::Schema::compile(schema.text());
  if (!compiled) return compiled.error().message();
  std::string problem = bounds_problem(schema);
  const json::View default_value = schema["default"];
  if (problem.empty() && !default_value.absent())
    problem = value_problem(*compiled, "default", default_value);
  schema["examples"].each_element([&](json::View example) {
    if (problem.empty()) problem = value_problem(*compiled, "example", example);
    return problem.empty();
  });
  return problem;
}

// Returns the first problem of a schema and the schemas inside it; empty if there is none. `path` is the path
// of the struct member that the schema describes; empty for the struct itself.
std::string problem_at(json::View schema, const std::string& path) {
  std::string problem;
  schema["properties"].each_member([&](std::string_view name, bool, json::View member) {
    problem = problem_at(member, path + (path.empty() ? "" : ".") + std::string(name));
    return problem.empty();
  });
  for (const char* inner : {"items", "additionalProperties"})
    if (problem.empty() && schema[inner].is(json::Type::object))
      problem = problem_at(schema[inner], path + "[]");
  if (!problem.empty() || path.empty()) return problem;
  problem = keyword_problem(schema);
  return problem.empty() ? problem : "member " + path + ": " + problem;
}

}  // namespace

std::string schema_problem(const json::Raw& schema) {
  return problem_at(json::View(schema), "");
}

}  // namespace typed

}  // namespace fairlead::mcp
