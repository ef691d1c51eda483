#include "gateway/client_link.hpp"

#include "fairlead/loop/run_on.hpp"

namespace fairlead::gateway {

namespace {

// On the client's loop.
Task<Result<json::Raw>> ask_client(mcp::Context client, std::string method, json::Raw params,
                                   std::stop_token stop) {
  Task<Result<json::Raw>> asking = client.ask_legacy(std::move(method), std::move(params), std::move(stop));
  Result<json::Raw> answer = co_await asking;
  co_return answer;
}

std::size_t bytes_of_client_answer(const Result<json::Raw>& answer) {
  return answer ? answer->text().size() : answer.error().message().size();
}

}  // namespace

Result<void> ClientLink::notify(std::string_view method, const json::Raw& params) const {
  if (client_.loop().here()) {
    client_.notify(method, params);
    return {};
  }
  Result<PostedBytes::Charge> charge = client_.posted().charge(method.size() + params.text().size());
  if (!charge) return charge.error();
  client_.loop().post(
      [charge = std::move(*charge), client = client_, method = std::string(method), params]() mutable {
        charge.release();
        client.notify(method, params);
      });
  return {};
}

Task<Result<json::Raw>> ClientLink::ask(std::string method, json::Raw params, std::stop_token stop) const {
  Loop& loop = client_.loop();
  const std::size_t bytes = method.size() + params.text().size();
  Task<Result<json::Raw>> asking = ask_client(client_, std::move(method), std::move(params), std::move(stop));
  if (loop.here()) return asking;
  return run_charged(*here_, loop, client_.posted(), bytes, std::move(asking), bytes_of_client_answer);
}

}  // namespace fairlead::gateway
