#include "admin/request_body.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "admin/problem.hpp"
#include "base/lower_case.hpp"
#include "base/suggestion.hpp"
#include "fairlead/json/scanner.hpp"

namespace fairlead::admin {

namespace {

std::string media_type(std::string_view content_type) {
  std::string type = lower_case(content_type.substr(0, content_type.find(';')));
  while (!type.empty() && (type.back() == ' ' || type.back() == '\t')) type.pop_back();
  return type;
}

Result<void> check_media_type(const http::Headers& headers, Body expected) {
  const std::string type = media_type(headers.get("Content-Type"));
  if (type == "application/json") return {};
  if (expected == Body::merge_patch && type == "application/merge-patch+json") return {};
  return problem(codes::kUnsupportedMediaType,
                 type.empty() ? "the request has no Content-Type" : "the Content-Type is \"" + type + "\"");
}

// Scans the next value. If it is malformed, returns false, and has appended the members that lead to the
// place to `pointer`.
bool scan_value(json::Scanner& scanner, std::string& pointer) {
  std::string_view key;
  bool escaped = false;
  if (scanner.peek() != json::Type::object) return scanner.value(key);
  scanner.begin_object();
  while (scanner.next_member(key, escaped)) {
    const std::size_t size = pointer.size();
    pointer += pointer_to(escaped ? json::unescape(key) : std::string(key));
    if (!scan_value(scanner, pointer)) return false;
    pointer.resize(size);
  }
  return !scanner.failed();
}

Error malformed_body(std::string_view body, const Error& error) {
  std::string pointer;
  json::Scanner scanner(body, kMaxBodyDepth);
  scan_value(scanner, pointer);
  return problem(codes::kMalformedJson, "the body is not JSON: " + error.message(), std::move(pointer));
}

Result<json::Raw> parse_object(const http::Request& request) {
  const std::optional<Error> malformed = json::validate(request.body.view(), kMaxBodyDepth);
  if (malformed) return malformed_body(request.body.view(), *malformed);
  json::Raw body = json::Raw::trusted(request.body);
  if (!json::View(body).is(json::Type::object))
    return problem(codes::kInvalidRow, "the body is not a JSON object");
  return body;
}

std::string list_of(std::initializer_list<std::string_view> known) {
  std::string list;
  for (const std::string_view name : known) list.append(list.empty() ? "" : ", ").append(name);
  return list.empty() ? "none" : list;
}

Error unknown_member(const std::string& name, std::initializer_list<std::string_view> known) {
  const std::vector<std::string> names(known.begin(), known.end());
  const std::string_view similar = closest_word(name, names);
  std::string message = "unknown member \"" + name + "\"";
  message += similar.empty() ? " (allowed: " + list_of(known) + ")"
                             : " (did you mean \"" + std::string(similar) + "\"?)";
  return problem(codes::kInvalidRow, std::move(message), pointer_to(name));
}

}  // namespace

std::string pointer_to(std::string_view name) {
  std::string pointer = "/";
  for (const char c : name) {
    if (c == '~')
      pointer += "~0";
    else if (c == '/')
      pointer += "~1";
    else
      pointer += c;
  }
  return pointer;
}

Result<void> check_members(json::View object, std::initializer_list<std::string_view> known) {
  std::optional<Error> wrong;
  std::set<std::string> seen;
  object.each_member([&](std::string_view key, bool escaped, json::View) {
    const std::string name = escaped ? json::unescape(key) : std::string(key);
    if (std::ranges::find(known, std::string_view(name)) == known.end())
      wrong = unknown_member(name, known);
    else if (!seen.insert(name).second)
      wrong = problem(codes::kInvalidRow, "member \"" + name + "\" occurs twice", pointer_to(name));
    return !wrong;
  });
  if (wrong) return *wrong;
  return {};
}

Result<json::Raw> read_body(const http::Request& request, Body expected, std::size_t max_body_bytes) {
  if (request.body.size() > max_body_bytes)
    return problem(codes::kBodyTooLarge, "the body has " + std::to_string(request.body.size()) +
                                             " bytes: max_admin_body_bytes (" +
                                             std::to_string(max_body_bytes) + ") exceeded");
  if (expected == Body::none && request.body.empty()) return json::Raw();
  const Result<void> typed = check_media_type(request.headers, expected);
  if (!typed) return typed.error();
  Result<json::Raw> body = parse_object(request);
  if (!body || expected != Body::none) return body;
  const Result<void> empty = check_members(json::View(*body), {});
  if (!empty) return empty.error();
  return json::Raw();
}

}  // namespace fairlead::admin
