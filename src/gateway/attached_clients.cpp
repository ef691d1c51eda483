#include "gateway/attached_clients.hpp"

#include <string>
#include <utility>
#include <vector>

#include "http/response_head.hpp"
#include "http/sse.hpp"

namespace fairlead::gateway {

void AttachedClients::add_route(http::Server& server) {
  if (streams_.empty()) none_.set();
  server.route(kPath, [weak = weak_from_this()](const std::shared_ptr<http::Exchange>& exchange) {
    if (const auto self = weak.lock()) self->serve(exchange);
  });
}

void AttachedClients::serve(const std::shared_ptr<http::Exchange>& exchange) {
  if (exchange->request().method != "GET")
    return exchange->respond(http::refusal_response(405, "Method Not Allowed: use GET"));
  if (streams_.size() >= kMaxAttachedClients)
    return exchange->respond(http::refusal_response(503, "Service Unavailable: max_attached_clients (" +
                                                             std::to_string(kMaxAttachedClients) +
                                                             ") processes are attached"));
  streams_.insert(exchange);
  none_.reset();
  exchange->when_disconnected([weak = weak_from_this(), key = std::weak_ptr<http::Exchange>(exchange)] {
    const auto self = weak.lock();
    if (self) self->remove(key.lock());
  });
  exchange->start(http::sse::response_head());
  std::vector<Bytes> comment;
  comment.push_back(Bytes::constant(": attached\n\n"));
  exchange->write(std::move(comment));
}

void AttachedClients::remove(const std::shared_ptr<http::Exchange>& exchange) {
  if (!exchange || streams_.erase(exchange) == 0 || !streams_.empty()) return;
  // Posted, because the waiter stops the server, which must not happen while a connection is being closed.
  exchange->loop().post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self && self->streams_.empty()) self->none_.set();
  });
}

void AttachedClients::finish() {
  for (const std::shared_ptr<http::Exchange>& exchange : std::exchange(streams_, {})) exchange->finish();
  none_.set();
}

}  // namespace fairlead::gateway
