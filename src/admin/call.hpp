// Call: one request to the admin API that has passed authentication and the checks of its route. Private to
// the layer.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "admin/query.hpp"
#include "admin/route.hpp"
#include "fairlead/http/server.hpp"

namespace fairlead::admin {

struct Services;

class Call {
 public:
  Call(Services& services, std::shared_ptr<http::Exchange> exchange, const Route& route,
       std::string request_id)
      : exchange_(std::move(exchange)),
        services_(services),
        route_(route),
        request_id_(std::move(request_id)),
        principal_(exchange_->request().principal) {}
  Call(const Call&) = delete;

  Services& services() const noexcept { return services_; }
  const Route& route() const noexcept { return route_; }
  const std::shared_ptr<http::Exchange>& exchange() const noexcept { return exchange_; }
  const http::Headers& headers() const noexcept { return exchange_->request().headers; }
  const std::string& request_id() const noexcept { return request_id_; }
  const Principal& principal() const noexcept { return *principal_; }
  const PrincipalPtr& principal_ptr() const noexcept { return principal_; }
  // Returns the value of the parameter in the path; no route has more than one.
  const std::string& path_value() const noexcept { return path_value_; }
  const Query& query() const noexcept { return query_; }
  const json::Raw& body() const noexcept { return body_; }
  // Stop is requested when the client disconnects.
  std::stop_token disconnected();

  // Called before the handler.
  void set_path_value(std::string value) { path_value_ = std::move(value); }
  void set_query(Query query) { query_ = std::move(query); }
  void set_body(json::Raw body) { body_ = std::move(body); }

 private:
  std::shared_ptr<http::Exchange> exchange_;
  Services& services_;
  const Route& route_;
  std::string request_id_;
  PrincipalPtr principal_;
  std::string path_value_;
  Query query_;
  json::Raw body_;
  std::optional<std::stop_source> stop_;
};

}  // namespace fairlead::admin
