// HttpClientTest: the fixture of the tests of the HTTP client.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "http/client.hpp"
#include "http/script_server.hpp"
#include "support/support.hpp"

namespace fairlead::http {

using test::ReceivedRequest;
using test::Reply;
using test::ScriptServer;

class HttpClientTest : public ::testing::Test {
 public:
  Loop loop;
  ClientOptions options;
  std::shared_ptr<HttpClient> client;

  void create_client() { client = HttpClient::create(loop, options).value(); }
  void TearDown() override {
    if (client) client->close();
  }

  struct FetchedResponse {
    int status = 0;
    Headers headers;
    std::string body;
  };
  Task<Result<FetchedResponse>> fetch(ClientRequest request) {
    auto waiter = std::make_shared<CancellableWaiter>(loop);
    Result<std::shared_ptr<ClientResponse>> response = co_await client->send(std::move(request), waiter);
    if (!response) co_return response.error();
    Result<std::string> body = co_await (*response)->read_all(options.max_response_bytes);
    if (!body) co_return body.error();
    co_return FetchedResponse{(*response)->status(), (*response)->headers(), std::move(*body)};
  }
  Result<FetchedResponse> get(const std::string& url, const std::string& method = "GET",
                              const std::string& body = "") {
    if (!client) create_client();
    ClientRequest request(method, Url::parse(url).value());
    if (!body.empty()) request.body.push_back(Bytes::copy_of(body));
    return loop.block_on(fetch(std::move(request)));
  }
  Task<void> get_many(std::string url, int count, int* served) {
    for (int i = 0; i < count; ++i) {
      const Result<FetchedResponse> response = co_await fetch(ClientRequest("GET", Url::parse(url).value()));
      if (!response || response->status != 200) break;
      ++*served;
    }
  }
  bool idle_connections_become(std::size_t count) {
    return loop.block_on(test::eventually(loop, [&] { return client->idle_count() == count; }));
  }
};

}  // namespace fairlead::http
