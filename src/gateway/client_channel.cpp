#include "gateway/client_channel.hpp"

#include "fairlead/loop/run_on.hpp"

namespace fairlead::gateway {

namespace {

// Sends a request to the client and returns its response. Runs on the client's loop.
Task<Result<json::Raw>> send_to_client(mcp::Context client, std::string method, json::Raw params,
                                       std::stop_token stop) {
  Result<json::Raw> response =
      co_await client.send_legacy_request(std::move(method), std::move(params), std::move(stop));
  co_return response;
}

std::size_t response_bytes(const Result<json::Raw>& response) {
  return response ? response->text().size() : response.error().message().size();
}

}  // namespace

Result<void> ClientChannel::notify(std::string_view method, const json::Raw& params) const {
  if (client_.loop().in_loop_thread()) {
    client_.notify(method, params);
    return {};
  }
  Result<PostedBytes::Charge> charge = client_.posted_bytes().charge(method.size() + params.text().size());
  if (!charge) return charge.error();
  client_.loop().post(
      [charge = std::move(*charge), client = client_, method = std::string(method), params]() mutable {
        charge.release();
        client.notify(method, params);
      });
  return {};
}

Task<Result<json::Raw>> ClientChannel::send_request(std::string method, json::Raw params,
                                                    std::stop_token stop) const {
  Loop& loop = client_.loop();
  const std::size_t bytes = method.size() + params.text().size();
  Task<Result<json::Raw>> request =
      send_to_client(client_, std::move(method), std::move(params), std::move(stop));
  if (loop.in_loop_thread()) return request;
  return run_charged(*caller_loop_, loop, client_.posted_bytes(), bytes, std::move(request), response_bytes);
}

}  // namespace fairlead::gateway
