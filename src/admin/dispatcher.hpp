// Dispatcher: the http::Handler of the admin API. It finds the route of a request, checks what does not
// depend on the route's handler, and sends the response. Private to the layer.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "admin/call.hpp"
#include "admin/idempotency.hpp"
#include "admin/services.hpp"

namespace fairlead::admin {

class Dispatcher : public std::enable_shared_from_this<Dispatcher> {
 public:
  explicit Dispatcher(std::shared_ptr<Services> services);

  http::Handler handler();

 private:
  class Permit;

  void dispatch(std::shared_ptr<http::Exchange> exchange);
  static Task<void> serve(std::shared_ptr<Dispatcher> self, std::shared_ptr<http::Exchange> exchange,
                          const Route& route, std::string path_value, std::string request_id);
  // Returns the response of the handler, or the stored response to an earlier request with the same
  // Idempotency-Key. `call` outlives the task.
  static Task<Result<Reply>> reply_to(std::shared_ptr<Dispatcher> self, Call& call);
  static Task<Result<Reply>> reply_once(std::shared_ptr<Dispatcher> self, Call& call);
  Result<void> prepare(Call& call) const;
  void send(http::Exchange& exchange, Reply reply, std::string_view request_id) const;
  void send_problem(http::Exchange& exchange, const Error& error, const std::string& request_id) const;

  std::shared_ptr<Services> services_;
  std::shared_ptr<Idempotency> idempotency_;
  std::map<std::string, std::size_t> requests_by_client_;  // in progress, by client_key()
};

}  // namespace fairlead::admin
