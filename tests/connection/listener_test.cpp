// Access to a listener: the permissions of its Unix socket, and the rejection of HTTP requests.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "connection/sockets.hpp"
#include "fairlead/connection/listen.hpp"
#include "fairlead/peer/peer.hpp"
#include "support/support.hpp"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

unsigned mode_of(const std::string& path) {
  struct stat about {};
  return ::lstat(path.c_str(), &about) == 0 ? about.st_mode & 07777 : 0;
}

class UmaskGuard {
 public:
  explicit UmaskGuard(mode_t mask) : before_(::umask(mask)) {}
  ~UmaskGuard() { ::umask(before_); }

 private:
  mode_t before_;
};

TEST(ListeningSocketTest, UnixSocketIsForItsOwnerOnlyRegardlessOfUmask) {
  const test::TempDir dir;
  const UmaskGuard guard(0);
  const Result<SocketAddress> address = unix_address(dir / "s");
  const Result<UniqueFd> socket = bind_and_listen(*address, "s");
  ASSERT_TRUE(socket) << socket.error().to_string();
  EXPECT_EQ(mode_of(dir / "s"), 0600u);
}

// The mode must be in effect from bind() on: between bind() and a later chmod(), any user could connect.
TEST(ListeningSocketTest, BindCreatesFileWithTheModeOfTheSocket) {
  const test::TempDir dir;
  const UmaskGuard guard(0);
  const Result<SocketAddress> address = unix_address(dir / "s");
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::fchmod(socket.get(), 0600), 0);
  ASSERT_EQ(::bind(socket.get(), address->get(), address->size), 0);
  EXPECT_EQ(mode_of(dir / "s"), 0600u);
}

TEST(ListeningSocketTest, WiderModeIsAppliedDespiteUmask) {
  const test::TempDir dir;
  const UmaskGuard guard(077);
  const Result<SocketAddress> address = unix_address(dir / "s");
  const Result<UniqueFd> socket = bind_and_listen(*address, "s", 0660);
  ASSERT_TRUE(socket) << socket.error().to_string();
  EXPECT_EQ(mode_of(dir / "s"), 0660u);
}

class ListenerHttpTest : public ::testing::Test {
 public:
  Loop loop;
  int served = 0;
  std::shared_ptr<Methods> methods = std::make_shared<Methods>();
  std::shared_ptr<Peer> peer;
  std::shared_ptr<Listener> listener;

  void listen(rpc::Framing framing) {
    methods->on("run", [this](const Request&) {
      ++served;
      return json::Raw::null();
    });
    StreamConnectOptions options;
    options.framing = framing;
    const Result<Uri> uri = Uri::parse("tcp:127.0.0.1:0");
    auto listening = Listener::listen(loop, *uri, options, [this](std::shared_ptr<Connection> c) {
      peer = Peer::start(std::move(c), methods);
    });
    ASSERT_TRUE(listening);
    listener = *listening;
  }

  Task<UniqueFd> connect() {
    const std::string name = listener->address();
    const auto port = static_cast<std::uint16_t>(std::stoi(name.substr(name.rfind(':') + 1)));
    const Result<SocketAddress> address = numeric_address("127.0.0.1", port);
    Result<UniqueFd> fd = co_await connect_socket(loop, *address, "test", 5s);
    co_return std::move(*fd);
  }

  // Sends the pieces one by one, waits for the end of the connection, and returns its reason.
  std::string end_after(const std::vector<std::string>& pieces) {
    peer.reset();
    const UniqueFd fd = loop.block_on(connect());
    loop.run_until([&] { return peer != nullptr; });
    for (const std::string& piece : pieces) {
      EXPECT_EQ(::send(fd.get(), piece.data(), piece.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(piece.size()));
      bool turned = false;
      loop.post([&] { turned = true; });
      loop.run_until([&] { return turned; });
    }
    ::shutdown(fd.get(), SHUT_WR);
    loop.run_until([&] { return peer->finished().is_set(); });
    return peer->end_reason()->message();
  }
};

const std::string kCrossSitePost =
    "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\nContent-Length: 50\r\n\r\n"
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"run\",\"params\":[]}\n";

TEST_F(ListenerHttpTest, HttpRequestClosesTheConnectionAndIsNotServed) {
  listen(rpc::Framing::line);
  const std::string reason = end_after({kCrossSitePost});
  EXPECT_NE(reason.find("sent an HTTP request"), std::string::npos) << reason;
  for (const std::string method : {"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "PRI"}) {
    const std::string other =
        end_after({method + " / HTTP/1.1\r\n{\"jsonrpc\":\"2.0\",\"method\":\"run\"}\n"});
    EXPECT_NE(other.find("sent an HTTP request"), std::string::npos) << other;
  }
  EXPECT_EQ(served, 0);
}

TEST_F(ListenerHttpTest, HttpRequestIsRecognisedWhenReceivedInPieces) {
  listen(rpc::Framing::line);
  const std::string reason = end_after({"P", "OS", kCrossSitePost.substr(3)});
  EXPECT_NE(reason.find("sent an HTTP request"), std::string::npos) << reason;
  EXPECT_EQ(served, 0);
}

TEST_F(ListenerHttpTest, HttpRequestIsRejectedWithHeaderFraming) {
  listen(rpc::Framing::header);
  const std::string reason =
      end_after({"POST /a:b HTTP/1.1\r\nContent-Length: 33\r\n\r\n"
                 "{\"jsonrpc\":\"2.0\",\"method\":\"run\"}\n"});
  EXPECT_NE(reason.find("sent an HTTP request"), std::string::npos) << reason;
  EXPECT_EQ(served, 0);
}

TEST_F(ListenerHttpTest, OtherTextIsNotRejectedAsHttp) {
  listen(rpc::Framing::line);
  end_after({"P\n{\"jsonrpc\":\"2.0\",\"method\":\"run\"}\n"});
  end_after({"GETTING started\n{\"jsonrpc\":\"2.0\",\"method\":\"run\"}\n"});
  EXPECT_EQ(served, 2);
}

}  // namespace
}  // namespace fairlead
