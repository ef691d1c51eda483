// R8.3: TLS of the server and of the client.
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "http/byte_stream.hpp"
#include "http/certificate.hpp"
#include "http/raw_client.hpp"
#include "http/tls_client.hpp"
#include "support/support.hpp"
#include "support/turns.hpp"

namespace fairlead::http {
namespace {

using namespace std::chrono_literals;
using test::HttpServer;
using test::make_certificate;
using test::Owned;
using test::RawClient;
using test::TlsClient;
using ExchangePtr = std::shared_ptr<Exchange>;

class HttpTlsTest : public testing::Test {
 protected:
  HttpTlsTest() {
    ServerOptions options;
    options.tls = make_certificate(directory, "first", "DNS:localhost,DNS:*.example.test,IP:127.0.0.1");
    server.emplace(std::move(options));
    server->route("/echo", [](const ExchangePtr& exchange) {
      Response response(200);
      response.headers.add("Secure", exchange->request().secure ? "yes" : "no");
      response.body.push_back(exchange->request().body);
      exchange->respond(std::move(response));
    });
  }
  static std::string post(std::string_view body) {
    return "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + std::string(body);
  }
  Result<void> reload_tls() { return server->thread().loop().block_on((*server)->reload_tls()); }

  test::TempDir directory;
  std::optional<HttpServer> server;
};

TEST_F(HttpTlsTest, ServesManySmallAndLargeRequests) {
  TlsClient client(server->address(), "http/1.1");
  ASSERT_TRUE(client.connected());
  EXPECT_EQ(client.protocol(), "http/1.1");
  for (const std::size_t size : {1u, 100u, 20'000u, 100u, 1u << 20, 5u}) {
    const std::string body(size, static_cast<char>('a' + size % 26));
    ASSERT_TRUE(client.send(post(body)));
    ASSERT_EQ(client.body(size), body);
  }
}

TEST_F(HttpTlsTest, RecordsBufferedByOpensslAreProcessed) {
  TlsClient client(server->address());
  std::string all;
  for (int i = 0; i < 500; ++i) all += post("0123456789");  // several records, several requests in each
  ASSERT_TRUE(client.send(all));
  all.clear();
  std::size_t response_count = 0;
  while (response_count < 500) {
    const std::string more = client.read();
    ASSERT_FALSE(more.empty()) << response_count;
    all += more;
    for (std::size_t at = 0; (at = all.find("0123456789")) != std::string::npos; ++response_count)
      all.erase(0, at + 10);
  }
}

TEST_F(HttpTlsTest, OldTlsVersionsAndOtherProtocolsAreRejected) {
  EXPECT_FALSE(TlsClient(server->address(), "", TLS1_1_VERSION).connected());
  EXPECT_TRUE(TlsClient(server->address(), "", TLS1_2_VERSION).connected());
  EXPECT_FALSE(TlsClient(server->address(), "h2").connected());
}

TEST_F(HttpTlsTest, SendsCloseNotifyBeforeClosing) {
  TlsClient client(server->address());
  ASSERT_TRUE(client.send(
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx"));
  EXPECT_EQ(client.body(1), "x");
  EXPECT_TRUE(client.received_close_notify());
}

TEST_F(HttpTlsTest, PlainTextAndSilentConnectionsAreClosed) {
  RawClient plain = server->client();
  plain.send(post("not TLS"));
  EXPECT_EQ(plain.read_response().status, 0);
  EXPECT_TRUE(TlsClient(server->address()).connected());
  ServerOptions options;
  options.tls = make_certificate(directory, "second", "DNS:localhost");
  options.header_timeout = 300ms;
  HttpServer impatient(std::move(options));
  RawClient silent = impatient.client();
  EXPECT_TRUE(silent.closed_by_server());
}

TEST_F(HttpTlsTest, ReloadAffectsNewConnectionsAndFailsForInvalidFiles) {
  TlsClient before(server->address());
  EXPECT_EQ(before.subject(), "first");
  const TlsFiles files = make_certificate(directory, "second", "DNS:localhost");
  const auto reload = [&] { return reload_tls(); };
  EXPECT_TRUE(reload());
  EXPECT_EQ(TlsClient(server->address()).subject(), "second");
  ASSERT_TRUE(before.send(post("still")));
  EXPECT_EQ(before.body(5), "still");
  std::ofstream(files.key) << "not a key";
  const auto failed = reload();
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message().find(files.key), std::string::npos);
  EXPECT_EQ(TlsClient(server->address()).subject(), "second");
}

TEST_F(HttpTlsTest, ListenFailsWhenCertificateOrKeyIsMissingOrMismatched) {
  test::TempDir other;
  const TlsFiles files = make_certificate(other, "other", "DNS:localhost");
  Loop loop;
  const std::string none = directory / "none";
  for (const auto& [wrong, problem] :
       {std::pair(TlsFiles{none, directory / "key.pem"},
                  "cannot use the certificate " + none + ": No such file or directory"),
        std::pair(TlsFiles{directory / "certificate.pem", none},
                  "cannot use the key " + none + ": No such file or directory"),
        std::pair(TlsFiles{directory / "certificate.pem", files.key},
                  "cannot use the key " + files.key + ": key values mismatch")}) {
    ServerOptions options;
    options.tls = wrong;
    const auto listening = Server::listen(loop, "127.0.0.1:0", std::move(options));
    ASSERT_FALSE(listening);
    EXPECT_EQ(listening.error().message(), problem);
  }
}

TEST_F(HttpTlsTest, ReloadFailsWhenCertificateOrKeyIsNotRegularFile) {
  const TlsFiles files{directory / "certificate.pem", directory / "key.pem"};
  for (const auto& [file, role] :
       {std::pair(files.key, "key "), std::pair(files.certificate, "certificate ")}) {
    std::filesystem::remove(file);
    ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
    const Result<void> reloaded = reload_tls();
    ASSERT_FALSE(reloaded);
    EXPECT_EQ(reloaded.error().message(),
              "cannot use the " + std::string(role) + file + ": it is a FIFO, not a regular file");
  }
  EXPECT_EQ(TlsClient(server->address()).subject(), "first");
}

TEST_F(HttpTlsTest, FileOverLimitIsRejectedNamingTheLimit) {
  const std::string file = directory / "certificate.pem";
  std::ofstream(file, std::ios::app) << std::string(1u << 20, '\n');
  const Result<void> reloaded = reload_tls();
  ASSERT_FALSE(reloaded);
  EXPECT_EQ(reloaded.error().message(),
            "cannot use the certificate " + file + ": it has more than max_tls_file_bytes (1048576)");
}

TEST_F(HttpTlsTest, EncryptedKeyIsRejectedWithoutPassphrasePrompt) {
  const Owned<EVP_PKEY, EVP_PKEY_free> key(EVP_EC_gen("P-256"));
  {
    const Owned<std::FILE, std::fclose> file(std::fopen((directory / "key.pem").c_str(), "w"));
    unsigned char passphrase[] = "secret";
    ASSERT_EQ(PEM_write_PrivateKey(file.get(), key.get(), EVP_aes_128_cbc(), passphrase, 6, nullptr, nullptr),
              1);
  }
  EXPECT_FALSE(reload_tls());
}

TEST_F(HttpTlsTest, ChainIsSentWithCertificate) {
  const std::string file = directory / "certificate.pem";
  std::stringstream once;
  once << std::ifstream(file).rdbuf();
  std::ofstream(file, std::ios::app) << once.str() << once.str();
  ASSERT_TRUE(reload_tls());
  EXPECT_EQ(TlsClient(server->address()).chain_size(), 3);
}

Task<void> record_result(Task<Result<void>> reloading, std::optional<bool>* read) {
  const Result<void> reloaded = co_await reloading;
  *read = static_cast<bool>(reloaded);
}

TEST_F(HttpTlsTest, LongChainIsReadAndParsedOnAnotherThread) {
  const std::string file = directory / "certificate.pem";
  std::stringstream once;
  once << std::ifstream(file).rdbuf();
  std::ofstream longer(file, std::ios::app);
  for (int i = 0; i < 500; ++i) longer << once.str();
  longer.close();
  ServerOptions options;
  options.tls = TlsFiles{file, directory / "key.pem"};
  Loop loop;
  const auto listening = Server::listen(loop, "127.0.0.1:0", std::move(options));
  ASSERT_TRUE(listening);
  std::optional<bool> read;
  std::optional<bool> read_in_first_turn;
  test::expect_short_turns(loop, [&] {
    loop.spawn(record_result((*listening)->reload_tls(), &read));
    loop.post([&] { read_in_first_turn = read.has_value(); });
    loop.run_until([&] { return read.has_value(); });
  });
  EXPECT_EQ(read_in_first_turn, false);
  EXPECT_EQ(read, true);
}

// ---- client side -----------------------------------------------------------------------------------------

// A TLS connection with its own loop. request() performs the handshake, sends a request and reads until
// `terminator` has arrived.
class TlsExchange {
 public:
  Result<std::string> request(const std::string& address, const std::shared_ptr<TlsContext>& context,
                              const std::string& host, std::string request, std::string terminator) {
    RawClient socket(address);
    Result<std::unique_ptr<ByteStream>> stream =
        make_tls_stream(loop_, UniqueFd(::dup(socket.fd())), context, host);
    if (!stream) return stream.error();
    stream_ = std::move(*stream);
    request_ = std::move(request);
    terminator_ = std::move(terminator);
    write();
    read();
    loop_.run_until([&] { return done_; });
    stream_.reset();
    if (error_) return *error_;
    return received_;
  }

 private:
  void write() {
    while (sent_ < request_.size() && !done_) {
      const std::size_t half = (request_.size() - sent_) / 2;
      const std::array<iovec, 2> parts = {
          iovec{request_.data() + sent_, half},
          iovec{request_.data() + sent_ + half, request_.size() - sent_ - half}};
      const ByteStream::IoResult io = stream_->write(parts);
      if (io.status == ByteStream::IoStatus::again) return stream_->when_writable([this] { write(); });
      if (io.status != ByteStream::IoStatus::ok) return fail(io);
      sent_ += io.bytes;
    }
  }
  void read() {
    while (!done_) {
      std::array<char, 3000> piece;
      const ByteStream::IoResult io = stream_->read(piece);
      if (io.status == ByteStream::IoStatus::again) return stream_->when_readable([this] { read(); });
      if (io.status != ByteStream::IoStatus::ok) return fail(io);
      const std::size_t before = received_.size() - std::min(received_.size(), terminator_.size());
      received_.append(piece.data(), io.bytes);
      done_ = received_.find(terminator_, before) != std::string::npos;
    }
  }
  void fail(const ByteStream::IoResult& io) {
    if (!done_) error_ = io.error ? *io.error : Error(ErrorKind::closed, "ended");
    done_ = true;
  }

  Loop loop_;
  std::unique_ptr<ByteStream> stream_;
  std::string request_;
  std::string terminator_;
  std::string received_;
  std::size_t sent_ = 0;
  bool done_ = false;
  std::optional<Error> error_;
};

TEST_F(HttpTlsTest, ClientVerifiesNamesAndAuthorities) {
  const std::string ca = directory / "certificate.pem";
  const auto trusting = make_client_tls_context(ca, true);
  ASSERT_TRUE(trusting);
  for (const char* host : {"localhost", "127.0.0.1", "some.example.test"}) {
    const auto response = TlsExchange().request(server->address(), *trusting, host, post("hello"), "hello");
    ASSERT_TRUE(response) << host << ": " << response.error().to_string();
    EXPECT_NE(response->find("Secure: yes"), std::string::npos);
  }
  for (const char* host : {"other.test", "127.0.0.2", "a.b.example.test"}) {
    const auto response = TlsExchange().request(server->address(), *trusting, host, post("hello"), "hello");
    ASSERT_FALSE(response) << host;
    EXPECT_EQ(response.error().kind(), ErrorKind::connection_failed);
    EXPECT_NE(response.error().message().find(std::string("certificate of ") + host), std::string::npos)
        << response.error().message();
  }
  const auto strict = make_client_tls_context("", true);
  ASSERT_TRUE(strict);
  EXPECT_FALSE(TlsExchange().request(server->address(), *strict, "localhost", post("hello"), "hello"));
  const auto careless = make_client_tls_context("", false);
  ASSERT_TRUE(careless);
  EXPECT_TRUE(TlsExchange().request(server->address(), *careless, "anything.test", post("hello"), "hello"));
  EXPECT_FALSE(make_client_tls_context(directory / "none", true));
}

TEST_F(HttpTlsTest, ClientTransfersMegabytesInBothDirections) {
  const auto context = make_client_tls_context(directory / "certificate.pem", true);
  ASSERT_TRUE(context);
  std::string body(3u << 20, 'x');
  body += "the end";
  const auto response =
      TlsExchange().request(server->address(), *context, "localhost", post(body), "the end");
  ASSERT_TRUE(response) << response.error().to_string();
  EXPECT_TRUE(response->ends_with(body));
}

// The last part of the handshake of the server can arrive between a write and a read. The read then completes
// the handshake, and the server sends nothing more until the write has sent the request.
TEST_F(HttpTlsTest, WriteContinuesWhenReadHasCompletedHandshake) {
  Loop loop;
  const auto client_context = make_client_tls_context(directory / "certificate.pem", true);
  const auto server_context = make_server_tls_context(directory / "certificate.pem", directory / "key.pem");
  ASSERT_TRUE(client_context && server_context);
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
  auto client = make_tls_stream(loop, UniqueFd(ends[0]), *client_context, "localhost");
  auto peer = make_tls_stream(loop, UniqueFd(ends[1]), *server_context, "");
  ASSERT_TRUE(client && peer);
  std::string request = "hello";
  const std::array<iovec, 1> parts = {iovec{request.data(), request.size()}};
  std::array<char, 100> piece;
  ASSERT_EQ((*client)->write(parts).status, ByteStream::IoStatus::again);
  bool writable = false;
  (*client)->when_writable([&] { writable = true; });
  ASSERT_EQ((*peer)->read(piece).status, ByteStream::IoStatus::again);
  ASSERT_EQ((*client)->read(piece).status, ByteStream::IoStatus::again);
  (*client)->when_readable([] {});
  bool late = false;
  Timer deadline(loop);
  deadline.arm_after(10s, [&] { late = true; });
  loop.run_until([&] { return writable || late; });
  EXPECT_TRUE(writable);
  EXPECT_EQ((*client)->write(parts).status, ByteStream::IoStatus::ok);
}

TEST_F(HttpTlsTest, NoDescriptorsLeak) {
  const auto context = make_client_tls_context(directory / "certificate.pem", true);
  const std::size_t before = test::open_descriptor_count();
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(TlsExchange().request(server->address(), *context, "localhost", post("hello"), "hello"));
    EXPECT_FALSE(TlsExchange().request(server->address(), *context, "wrong.test", post("hello"), "hello"));
  }
  EXPECT_TRUE(test::wait_until([&] { return test::open_descriptor_count() == before; }));
}

}  // namespace
}  // namespace fairlead::http
