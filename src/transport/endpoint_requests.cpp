#include "transport/endpoint_requests.hpp"

#include <sys/random.h>

#include <algorithm>

#include "base/comma_list.hpp"
#include "fairlead/base/base64.hpp"
#include "transport/request_rules.hpp"

namespace fairlead::transport {

std::string make_session_id() {
  char bytes[24];
  while (::getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes)) continue;
  return base64url_encode(std::string_view(bytes, sizeof bytes));
}

http::Response method_not_allowed_response(std::string_view allow) {
  http::Response response = to_response(Refusal{405, kRefused, "Method Not Allowed"});
  response.headers.add("Allow", allow);
  return response;
}

bool contains_token(std::string_view list, std::string_view token) {
  return any_list_element(list,
                          [&](std::string_view element) { return http::equals_ignore_case(element, token); });
}

bool requests_websocket(const http::Request& request) {
  return request.method == "GET" && contains_token(request.headers.get("Upgrade"), "websocket");
}

std::string_view query_value(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    if (pair.starts_with(name) && pair.substr(name.size()).starts_with("="))
      return pair.substr(name.size() + 1);
  }
  return {};
}

std::string client_name(const rpc::Message& initialize) {
  constexpr std::size_t kMaxBytes = 100;
  const json::View info = json::View(initialize.params_text())["clientInfo"];
  std::string name = info["name"].as_string(kMaxBytes).value_or("");
  const std::string version = info["version"].as_string(kMaxBytes).value_or("");
  return name.empty() || version.empty() ? name : name + " " + version;
}

}  // namespace fairlead::transport
