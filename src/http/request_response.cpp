// Request and Response: the messages that http::Server receives and sends. Exchange: what its implementations
// share.
#include "fairlead/http/server.hpp"

namespace fairlead::http {

std::string_view Request::path() const noexcept {
  return std::string_view(target).substr(0, target.find('?'));
}

std::string_view Request::query() const noexcept {
  const std::size_t mark = target.find('?');
  return mark == std::string::npos ? std::string_view() : std::string_view(target).substr(mark + 1);
}

Response Response::json(int status, Bytes body) {
  Response response(status);
  response.headers.add("Content-Type", "application/json");
  response.body.push_back(std::move(body));
  return response;
}

void Exchange::respond_with(int status, std::string_view content_type, const rpc::Rope& body) {
  Response response(status);
  response.headers.add("Content-Type", content_type);
  body.each([&](const Bytes& part) { response.body.push_back(part); });
  respond(std::move(response));
}

Response Response::text(int status, std::string_view body) {
  Response response(status);
  response.headers.add("Content-Type", "text/plain; charset=utf-8");
  response.body.push_back(Bytes::copy_of(body));
  return response;
}

}  // namespace fairlead::http
