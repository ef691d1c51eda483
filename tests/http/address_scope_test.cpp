// ClientOptions::public_addresses_only: connections to this machine and to private networks are refused,
// whichever way their address is written.
#include <gtest/gtest.h>

#include <cstdlib>

#include "http/client.hpp"
#include "http/script_server.hpp"
#include "support/support.hpp"

namespace fairlead::http {
namespace {

using test::ReceivedRequest;
using test::Reply;
using test::ScriptServer;

void respond_ok(const ReceivedRequest&, Reply& reply) {
  reply.respond(200, "text/plain", "ok");
}

class AddressScopeTest : public ::testing::Test {
 public:
  Loop loop;

  Task<Result<int>> fetch_status(std::shared_ptr<HttpClient> client, std::string url) {
    auto waiter = std::make_shared<CancellableWaiter>(loop);
    ClientRequest request("GET", Url::parse(url).value());
    const Result<std::shared_ptr<ClientResponse>> response =
        co_await client->send(std::move(request), waiter);
    if (!response) co_return response.error();
    co_return (*response)->status();
  }
  Result<int> get(const std::string& url, bool public_only) {
    ClientOptions options;
    options.public_addresses_only = public_only;
    const auto client = HttpClient::create(loop, options).value();
    const Result<int> status = loop.block_on(fetch_status(client, url));
    client->close();
    return status;
  }
};

TEST_F(AddressScopeTest, LoopbackAddressIsRefusedHoweverItIsWritten) {
  ScriptServer server(&respond_ok);
  const std::string port = std::to_string(server.port());
  EXPECT_EQ(get("http://127.0.0.1:" + port + "/", false).value(), 200);
  for (const std::string host : {"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"}) {
    const Result<int> status = get("http://" + host + ":" + port + "/", true);
    ASSERT_FALSE(status) << host;
    EXPECT_EQ(status.error().kind(), ErrorKind::connection_failed) << host;
    EXPECT_NE(status.error().message().find("private network"), std::string::npos)
        << status.error().message();
    EXPECT_TRUE(status.error().detail().unsent) << host;
  }
}

// The names are resolved by the system: 127.1 and 2130706433 are spellings of 127.0.0.1.
TEST_F(AddressScopeTest, HostNameThatResolvesToLoopbackIsRefused) {
  ScriptServer server(&respond_ok);
  const std::string port = std::to_string(server.port());
  for (const std::string host : {"127.1", "2130706433", "localhost.localdomain"}) {
    const Result<int> status = get("http://" + host + ":" + port + "/", true);
    EXPECT_FALSE(status) << host;
  }
}

TEST_F(AddressScopeTest, ProxyOfEnvironmentIsNotUsed) {
  ScriptServer proxy(&respond_ok);
  ::setenv("http_proxy", ("http://127.0.0.1:" + std::to_string(proxy.port())).c_str(), 1);
  EXPECT_EQ(get("http://server.test/", false).value(), 200);
  EXPECT_FALSE(get("http://server.test/", true));
  ::unsetenv("http_proxy");
  EXPECT_EQ(proxy.requests().size(), 1u);
}

}  // namespace
}  // namespace fairlead::http
