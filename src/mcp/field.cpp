#include "fairlead/mcp/field.hpp"

#include <algorithm>

#include "fairlead/json/schema.hpp"
#include "fairlead/json/view.hpp"

namespace fairlead::mcp {

// ---- metadata -------------------------------------------------------------------------------------------

bool FieldSchema::has(std::string_view keyword) const noexcept {
  return std::ranges::any_of(keywords_, [&](const auto& one) { return one.first == keyword; });
}

void FieldSchema::write_keywords(json::Writer& out) const {
  for (const auto& [keyword, value] : keywords_) out.key(keyword).raw(value);
}

FieldSchema FieldSchema::of_elements() const {
  FieldSchema made;
  made.labels_ = labels_;
  return made;
}

void FieldSchema::set(std::string_view keyword, std::string value) {
  std::erase_if(keywords_, [&](const auto& one) { return one.first == keyword; });
  keywords_.emplace_back(keyword, std::move(value));
}

void FieldSchema::set_text(std::string_view keyword, std::string_view text) {
  set(keyword, std::string(json::string(text).text()));
}

void FieldSchema::append(std::string_view keyword, const std::string& element) {
  const auto found = std::ranges::find_if(keywords_, [&](const auto& one) { return one.first == keyword; });
  if (found == keywords_.end()) return set(keyword, "[" + element + "]");
  found->second.back() = ',';
  found->second += element + "]";
}

void FieldSchema::set_label(std::string enumerator, std::string label) {
  labels_.emplace_back(std::move(enumerator), std::move(label));
}

// ---- checks ---------------------------------------------------------------------------------------------

namespace typed {

namespace {

// Two keywords of which the first is a lower and the second an upper bound.
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
    const double least = lower.as_double().value_or(0);
    const double most = upper.as_double().value_or(0);
    if (least < most || (bounds.may_be_equal && least == most)) continue;
    return std::string(bounds.lower) + " " + std::string(lower.text()) + " and " + bounds.upper + " " +
           std::string(upper.text()) + " exclude every value";
  }
  return {};
}

// Of a value that the metadata itself names.
std::string value_problem(const json::Schema& schema, const char* what, json::View value) {
  const auto violation = schema.validate(value.text());
  if (!violation) return {};
  return std::string(what) + " " + std::string(value.text()) + " is invalid: " + violation->message;
}

std::string own_problem(json::View schema) {
  const Result<json::Schema> compiled = json::Schema::compile(schema.text());
  if (!compiled) return compiled.error().message();
  std::string problem = bounds_problem(schema);
  const json::View fallback = schema["default"];
  if (problem.empty() && !fallback.absent()) problem = value_problem(*compiled, "default", fallback);
  schema["examples"].each_element([&](json::View example) {
    if (problem.empty()) problem = value_problem(*compiled, "example", example);
    return problem.empty();
  });
  return problem;
}

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
  problem = own_problem(schema);
  return problem.empty() ? problem : "member " + path + ": " + problem;
}

}  // namespace

std::string schema_problem(const json::Raw& schema) {
  return problem_at(json::View(schema), "");
}

}  // namespace typed

}  // namespace fairlead::mcp
