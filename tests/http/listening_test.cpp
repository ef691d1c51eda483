// Listening addresses, draining and upgrades of the server.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>

#include "http/byte_stream.hpp"
#include "http/raw_client.hpp"
#include "support/support.hpp"

namespace fairlead::http {
namespace {

using namespace std::chrono_literals;
using test::HttpServer;
using test::RawClient;
using test::wait_until;
using ExchangePtr = std::shared_ptr<Exchange>;

constexpr std::string_view kGetX = "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n";

void respond_with_remote(const ExchangePtr& exchange) {
  exchange->respond(Response::text(200, exchange->request().remote));
}

bool is_socket(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode);
}

TEST(HttpListeningTest, LocalhostMeansBothLoopbackAddresses) {
  HttpServer server(ServerOptions(), "localhost:0");
  server.route("/x", respond_with_remote);
  ASSERT_TRUE(server.address().starts_with("localhost:")) << server.address();
  EXPECT_NE(server.address(), "localhost:0");
  EXPECT_EQ(server.client().request(kGetX).status, 200);
  const std::string v6 = "[::1]:" + server.address().substr(10);
  try {
    RawClient client(v6);
    EXPECT_TRUE(client.request(kGetX).body.starts_with("[::1]:"));
  } catch (const std::exception&) {
    Loop loop;
    if (Server::listen(loop, "[::1]:0")) FAIL() << "the server does not listen on " << v6;
    GTEST_SKIP() << "this machine has no IPv6";
  }
}

TEST(HttpListeningTest, UnixSocketFileIsRemovedWithServer) {
  test::TempDir directory;
  const std::string path = directory / "http.sock";
  {
    HttpServer server(ServerOptions(), "unix:" + path);
    server.route("/x", respond_with_remote);
    EXPECT_EQ(server.address(), "unix:" + path);
    EXPECT_TRUE(is_socket(path));
    const auto response = server.client().request("GET /x HTTP/1.1\r\nHost: any.example\r\n\r\n");
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "unix");
  }
  EXPECT_FALSE(is_socket(path));
}

TEST(HttpListeningTest, StaleSocketFileIsReplacedButNotOneInUse) {
  test::TempDir directory;
  const std::string path = directory / "http.sock";
  {
    UniqueFd dead(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    path.copy(name.sun_path, sizeof name.sun_path - 1);
    ASSERT_EQ(::bind(dead.get(), reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  }
  ASSERT_TRUE(is_socket(path));
  HttpServer server(ServerOptions(), "unix:" + path);
  Loop loop;
  const auto second = Server::listen(loop, "unix:" + path);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind(), ErrorKind::connection_failed);
  const std::string file = directory / "file";
  std::ofstream(file) << "not a socket";
  EXPECT_FALSE(Server::listen(loop, "unix:" + file));
  EXPECT_TRUE(std::filesystem::exists(file));
}

TEST(HttpListeningTest, SocketFileReplacedByAnotherProcessIsKept) {
  test::TempDir directory;
  const std::string path = directory / "http.sock";
  {
    HttpServer server(ServerOptions(), "unix:" + path);
    std::filesystem::remove(path);
    std::ofstream(path) << "a file of another program";
  }
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST(HttpListeningTest, ListenFailsForMalformedAndUnusableAddresses) {
  Loop loop;
  HttpServer in_use;
  const auto kind_of = [&](const std::string& address) {
    const auto server = Server::listen(loop, address);
    return server ? std::nullopt : std::optional(server.error().kind());
  };
  for (const char* malformed : {"", "8080", "::1:80", "127.0.0.1:70000", "127.0.0.1:", "unix:"})
    EXPECT_EQ(kind_of(malformed), ErrorKind::validation) << malformed;
  for (const std::string& unusable :
       std::vector<std::string>{"example.com:80", "unix:/nowhere/at/all", "192.0.2.1:0", in_use.address()})
    EXPECT_EQ(kind_of(unusable), ErrorKind::connection_failed) << unusable;
}

class HttpDrainTest : public testing::Test {
 protected:
  void create_server(std::chrono::milliseconds grace) {
    ServerOptions options;
    options.drain_grace = grace;
    server.emplace(std::move(options));
    server->route("/x", respond_with_remote);
    server->route("/wait", [this](ExchangePtr exchange) {
      pending = std::move(exchange);
      request_received = true;
    });
  }
  void TearDown() override {
    server->thread().run([this] { pending.reset(); });
  }
  void drain() {
    server->thread().run([this] { server->thread().loop().spawn(draining(this)); });
  }
  static Task<void> draining(HttpDrainTest* self) {
    Task<void> drained = (*self->server)->drain();
    co_await drained;
    self->drained = true;
  }
  std::optional<HttpServer> server;
  ExchangePtr pending;
  std::atomic<bool> request_received = false;
  std::atomic<bool> drained = false;
};

TEST_F(HttpDrainTest, WaitsForResponsesInProgressAndRejectsNewConnections) {
  create_server(1h);
  RawClient idle = server->client();
  ASSERT_EQ(idle.request(kGetX).status, 200);
  RawClient busy = server->client();
  ASSERT_TRUE(busy.send("GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  ASSERT_TRUE(wait_until([&] { return request_received.load(); }));
  drain();
  EXPECT_TRUE(idle.closed_by_server());
  EXPECT_THROW(server->client(), std::runtime_error);
  EXPECT_FALSE(drained);
  server->thread().run([&] { std::exchange(pending, nullptr)->respond(Response::text(200, "done")); });
  const auto response = busy.read_response();
  EXPECT_EQ(response.body, "done");
  EXPECT_TRUE(response.has("Connection: close"));
  EXPECT_TRUE(busy.closed_by_server());
  busy.close();
  EXPECT_TRUE(wait_until([&] { return drained.load(); }));
}

TEST_F(HttpDrainTest, ClosesConnectionsAfterDrainGrace) {
  create_server(100ms);
  RawClient busy = server->client();
  ASSERT_TRUE(busy.send("GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  ASSERT_TRUE(wait_until([&] { return request_received.load(); }));
  drain();
  EXPECT_TRUE(busy.closed_by_server());
  EXPECT_TRUE(wait_until([&] { return drained.load(); }));
}

TEST_F(HttpDrainTest, CanBeStartedByHandler) {
  create_server(1h);
  server->route("/drain", [this](const ExchangePtr& exchange) {
    exchange->respond(Response::text(200, "will do"));
    server->thread().loop().spawn(draining(this));
  });
  RawClient client = server->client();
  EXPECT_EQ(client.request("GET /drain HTTP/1.1\r\nHost: localhost\r\n\r\n").body, "will do");
  EXPECT_TRUE(client.closed_by_server());
  client.close();
  EXPECT_TRUE(wait_until([&] { return drained.load(); }));
}

TEST_F(HttpDrainTest, EndsAtOnceWithoutConnections) {
  create_server(1h);
  drain();
  EXPECT_TRUE(wait_until([&] { return drained.load(); }));
}

// Owns an upgraded connection and echoes its input.
class Echo : public std::enable_shared_from_this<Echo> {
 public:
  explicit Echo(Exchange::Upgraded upgraded) : upgraded_(std::move(upgraded)) {}
  void run() {
    write(upgraded_.read_ahead);
    wait();
  }

 private:
  void wait() {
    upgraded_.stream->when_readable([self = shared_from_this()] { self->read(); });
  }
  void read() {
    std::array<char, 1024> piece;
    const ByteStream::IoResult io = upgraded_.stream->read(piece);
    if (io.status == ByteStream::IoStatus::ended) return upgraded_.stream->close();
    write(std::string_view(piece.data(), io.bytes));
    wait();
  }
  void write(std::string_view text) {
    const iovec part{const_cast<char*>(text.data()), text.size()};
    if (!text.empty()) static_cast<void>(upgraded_.stream->write({&part, 1}));
  }
  Exchange::Upgraded upgraded_;
};

TEST(HttpUpgradeTest, HandlerGetsSocketAndBytesReadAhead) {
  const std::size_t before = test::open_descriptor_count();
  {
    HttpServer server;
    std::vector<ExchangePtr> pending;
    std::atomic<bool> request_received = false;
    const auto upgrade = [](Exchange& exchange) {
      Response head(101);
      head.headers.add("Upgrade", "echo");
      std::make_shared<Echo>(exchange.upgrade(std::move(head)))->run();
    };
    server.route("/now", [&](const ExchangePtr& exchange) { upgrade(*exchange); });
    server.route("/later", [&](ExchangePtr exchange) {
      pending.push_back(std::move(exchange));
      request_received = true;
    });
    for (const std::string path : {"/now", "/later"}) {
      RawClient client = server.client();
      ASSERT_TRUE(
          client.send("GET " + path +
                      " HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly"));
      if (path == "/later") {
        ASSERT_TRUE(wait_until([&] { return request_received.load(); }));
        server.thread().run([&] {
          upgrade(*pending.front());
          pending.clear();
        });
      }
      const auto response = client.read_response();
      EXPECT_EQ(response.status, 101);
      EXPECT_TRUE(response.has("Connection: Upgrade\r\n"));
      EXPECT_TRUE(response.has("Upgrade: echo\r\n"));
      EXPECT_EQ(client.read_bytes(5), "early");
      ASSERT_TRUE(client.send("and more"));
      EXPECT_EQ(client.read_bytes(8), "and more");
      EXPECT_EQ(server.connection_count(), 0U);
      client.shutdown_output();
      EXPECT_TRUE(client.closed_by_server());
    }
  }
  EXPECT_EQ(test::open_descriptor_count(), before);
}

}  // namespace
}  // namespace fairlead::http
