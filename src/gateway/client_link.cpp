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

Task<Result<json::Raw>> await_client(Loop& here, Loop& other, Task<Result<json::Raw>> asking) {
  RunOn<Result<json::Raw>> running(here, other, std::move(asking));
  Result<json::Raw> answer = co_await running;
  co_return answer;
}

}  // namespace

void ClientLink::notify(std::string_view method, const json::Raw& params) const {
  if (client_.loop().here()) return client_.notify(method, params);
  client_.loop().post(
      [client = client_, method = std::string(method), params] { client.notify(method, params); });
}

Task<Result<json::Raw>> ClientLink::ask(std::string method, json::Raw params, std::stop_token stop) const {
  Loop& loop = client_.loop();
  Task<Result<json::Raw>> asking = ask_client(client_, std::move(method), std::move(params), std::move(stop));
  if (loop.here()) return asking;
  return await_client(*here_, loop, std::move(asking));
}

}  // namespace fairlead::gateway
