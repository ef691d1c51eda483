#include "admin/route.hpp"

#include <algorithm>
#include <set>

#include "admin/query.hpp"

namespace fairlead::admin {

namespace {

// Removes the first segment from `path` and returns it: "/a/b" -> "a", leaving "/b".
std::string_view pop_segment(std::string_view& path) {
  path.remove_prefix(1);
  const std::string_view segment = path.substr(0, path.find('/'));
  path.remove_prefix(segment.size());
  return segment;
}

// Returns whether `path` has the form of `pattern`. Appends the values of the parameters, not decoded.
bool matches_pattern(std::string_view pattern, std::string_view path, std::vector<std::string_view>& values) {
  while (!pattern.empty() && !path.empty()) {
    const std::string_view expected = pop_segment(pattern);
    const std::string_view segment = pop_segment(path);
    if (expected.starts_with('{')) {
      if (segment.empty()) return false;
      values.push_back(segment);
    } else if (expected != segment) {
      return false;
    }
  }
  return pattern.empty() && path.empty();
}

bool decode_values(const std::vector<std::string_view>& raw, std::vector<std::string>& decoded) {
  for (const std::string_view value : raw) {
    std::optional<std::string> text = decode_segment(value);
    if (!text) return false;
    decoded.push_back(std::move(*text));
  }
  return true;
}

std::string_view without_prefix(std::string_view path) {
  if (path.starts_with(kApiPrefix)) path.remove_prefix(kApiPrefix.size());
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

}  // namespace

RouteTable::RouteTable(std::vector<Route> routes) : routes_(std::move(routes)) {}

RouteTable::Match RouteTable::find(std::string_view method, std::string_view path) const {
  if (method == "HEAD") method = "GET";
  path = without_prefix(path);
  Match match;
  if (!path.starts_with('/')) return match;
  std::size_t fewest_parameters = path.size();
  for (const Route& route : routes_) {
    std::vector<std::string_view> values;
    if (!matches_pattern(route.path, path, values) || values.size() > fewest_parameters) continue;
    if (values.size() < fewest_parameters) match = Match();
    fewest_parameters = values.size();
    match.allowed.push_back(route.method);
    if (route.method != method) continue;
    match.route = &route;
    match.malformed = !decode_values(values, match.values);
  }
  if (std::ranges::find(match.allowed, "GET") != match.allowed.end()) match.allowed.push_back("HEAD");
  if (!match.allowed.empty()) match.allowed.push_back("OPTIONS");
  return match;
}

// The root of a path is the part before its first parameter. "/mcp" itself is the endpoint of MCP, so the
// root of "/mcp/servers" has two segments.
std::vector<std::string> RouteTable::roots() const {
  std::set<std::string> roots;
  for (const Route& route : routes_) {
    std::string_view rest = route.path;
    std::string root = "/" + std::string(pop_segment(rest));
    if (root == "/mcp" && !rest.empty()) root += "/" + std::string(pop_segment(rest));
    roots.insert(std::move(root));
  }
  return std::vector<std::string>(roots.begin(), roots.end());
}

}  // namespace fairlead::admin
