// Requests that repeat the head of the previous request of their connection: RequestReader compares them
// instead of parsing them, and keeps what was derived from the head.
#include <gtest/gtest.h>

#include "fairlead/http/authenticator.hpp"
#include "http/raw_client.hpp"
#include "http/request_reader.hpp"
#include "support/support.hpp"

namespace fairlead::http {
namespace {

using test::HttpServer;
using test::RawClient;

constexpr std::size_t kMaxRepeatedHeaderBytes = 8192;
constexpr std::size_t kMaxRepeatedBodyBytes = 500;

std::string repeatable_post(std::string_view body, std::string_view fields = "",
                            std::string_view length = "") {
  const std::string digits = length.empty() ? std::to_string(body.size()) : std::string(length);
  return "POST /a?b HTTP/1.1\r\nHost: h:1\r\nContent-Length: " + digits + "\r\nX-Thing: t\r\n" +
         std::string(fields) + "\r\n" + std::string(body);
}

struct Attachment final : HeadAttachment {};

class RepeatedHeadTest : public testing::Test {
 protected:
  // Reads one request. Returns null if it is rejected, or if it does not end where `bytes` end.
  std::unique_ptr<Request> read(std::string_view bytes) {
    const auto ended = [&] {
      return reader.state() == RequestReader::State::refused ||
             reader.state() == RequestReader::State::complete;
    };
    while (!bytes.empty() && !ended()) bytes.remove_prefix(reader.feed(bytes));
    const bool complete = reader.state() == RequestReader::State::complete && bytes.empty();
    return complete ? reader.extract_request() : nullptr;
  }
  // Reads a first request, attaches something to it and returns it to the reader.
  void read_first(std::string_view bytes) {
    std::unique_ptr<Request> request = read(bytes);
    ASSERT_TRUE(request);
    request->attachment = attachment;
    reader.reclaim_head(std::move(request), reader.head_number());
  }

  RequestReader reader{kMaxRepeatedHeaderBytes, kMaxRepeatedBodyBytes};
  std::shared_ptr<const HeadAttachment> attachment = std::make_shared<Attachment>();
};

TEST_F(RepeatedHeadTest, SameHeadKeepsRequestAndAttachment) {
  read_first(repeatable_post("first"));
  const std::uint64_t number = reader.head_number();
  const auto request = read(repeatable_post("later"));
  ASSERT_TRUE(request);
  EXPECT_EQ(request->attachment, attachment);
  EXPECT_EQ(reader.head_number(), number);
  EXPECT_EQ(request->body.view(), "later");
  EXPECT_EQ(request->method + request->target, "POST/a?b");
  EXPECT_EQ(request->headers.get("x-thing"), "t");
  EXPECT_EQ(reader.authority(), "h:1");
  EXPECT_TRUE(reader.keep_alive());
}

TEST_F(RepeatedHeadTest, ContentLengthWithAsManyDigitsIsReplaced) {
  read_first(repeatable_post("12345"));
  const auto request = read(repeatable_post("1234567"));
  ASSERT_TRUE(request);
  EXPECT_EQ(request->attachment, attachment);
  EXPECT_EQ(request->headers.get("content-length"), "7");
  EXPECT_EQ(request->body.view(), "1234567");
}

TEST_F(RepeatedHeadTest, HeadWithMoreDigitsIsParsedAgain) {
  read_first(repeatable_post("12345"));
  const auto request = read(repeatable_post("1234567890"));
  ASSERT_TRUE(request);
  EXPECT_EQ(request->attachment, nullptr);
  EXPECT_EQ(request->headers.get("content-length"), "10");
  EXPECT_EQ(request->body.view(), "1234567890");
}

TEST_F(RepeatedHeadTest, HeadThatDiffersInOneByteIsParsedAgain) {
  const std::string first = repeatable_post("12345");
  const std::size_t digit = first.find("Content-Length: ") + 16;
  for (std::size_t at = 0; at < first.find("\r\n\r\n"); ++at) {
    if (at == digit) continue;
    SCOPED_TRACE(at);
    RequestReader fresh(kMaxRepeatedHeaderBytes, kMaxRepeatedBodyBytes);
    reader = std::move(fresh);
    read_first(first);
    std::string changed = first;
    changed[at] = changed[at] == 'q' ? 'z' : 'q';
    RequestReader reference(kMaxRepeatedHeaderBytes, kMaxRepeatedBodyBytes);
    for (std::string_view rest = changed; !rest.empty() &&
                                          reference.state() != RequestReader::State::refused &&
                                          reference.state() != RequestReader::State::complete;)
      rest.remove_prefix(reference.feed(rest));
    for (std::string_view rest = changed; !rest.empty() && reader.state() != RequestReader::State::refused &&
                                          reader.state() != RequestReader::State::complete;)
      rest.remove_prefix(reader.feed(rest));
    ASSERT_EQ(reader.state(), reference.state());
    if (reader.state() == RequestReader::State::refused) {
      EXPECT_EQ(reader.refusal().status, reference.refusal().status);
    } else {
      const auto request = reader.extract_request();
      const auto expected = reference.extract_request();
      EXPECT_EQ(request->attachment, nullptr);
      EXPECT_EQ(request->headers.text(), expected->headers.text());
      EXPECT_EQ(request->target, expected->target);
    }
  }
}

TEST_F(RepeatedHeadTest, InvalidContentLengthOfRepeatedHeadIsRejected) {
  for (const std::string_view length : {"x", "-", "+", " ", "\t"}) {
    SCOPED_TRACE(length);
    RequestReader fresh(kMaxRepeatedHeaderBytes, kMaxRepeatedBodyBytes);
    reader = std::move(fresh);
    read_first(repeatable_post("12345"));
    EXPECT_EQ(read(repeatable_post("12345", "", length)), nullptr);
    EXPECT_EQ(reader.refusal().status, 400);
  }
}

TEST_F(RepeatedHeadTest, TooLargeBodyOfRepeatedHeadIsRejected) {
  read_first(repeatable_post(std::string(400, 'x')));
  EXPECT_EQ(read(repeatable_post(std::string(501, 'x'))), nullptr);
  EXPECT_EQ(reader.refusal().status, 413);
}

TEST_F(RepeatedHeadTest, RepeatedHeadInPiecesIsParsed) {
  read_first(repeatable_post("first"));
  const std::string second = repeatable_post("later");
  ASSERT_EQ(reader.feed(second.substr(0, 30)), 30U);
  const auto request = read(std::string_view(second).substr(30));
  ASSERT_TRUE(request);
  EXPECT_EQ(request->attachment, nullptr);
  EXPECT_EQ(request->body.view(), "later");
}

TEST_F(RepeatedHeadTest, RequestOfEarlierHeadIsNotKept) {
  std::unique_ptr<Request> first = read(repeatable_post("first"));
  first->attachment = attachment;
  const std::uint64_t number = reader.head_number();
  ASSERT_TRUE(read(repeatable_post("other", "X-Other: o\r\n")));
  reader.reclaim_head(std::move(first), number);
  const auto third = read(repeatable_post("third"));
  ASSERT_TRUE(third);
  EXPECT_EQ(third->attachment, nullptr);
}

TEST_F(RepeatedHeadTest, ChunkedBodyIsReadAgain) {
  const std::string chunked =
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
  read_first(chunked);
  const auto request = read(chunked);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->body.view(), "abc");
}

// The reader frees its memory after the long trailer, and with it the decoder of the chunks.
TEST_F(RepeatedHeadTest, ChunkedBodyIsReadAgainAfterLongTrailer) {
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string trailer = "X-Long: " + std::string(6000, 'x');
  ASSERT_EQ(reader.feed(head), head.size());
  for (const std::string& piece : {std::string("3\r\nabc\r\n0\r\n"), trailer, std::string("\r\n\r\n")})
    ASSERT_EQ(reader.feed(piece), piece.size());
  ASSERT_EQ(reader.state(), RequestReader::State::complete);
  reader.reclaim_head(reader.extract_request(), reader.head_number());
  const auto request = read(head + "3\r\nabc\r\n0\r\n\r\n");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->body.view(), "abc");
}

TEST_F(RepeatedHeadTest, EachRequestThatExpectsContinueGetsIt) {
  const std::string whole = repeatable_post("12345", "Expect: 100-continue\r\n");
  const std::string head = whole.substr(0, whole.size() - 5);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(reader.feed(head), head.size());
    ASSERT_TRUE(reader.expects_continue());
    reader.on_continue_sent();
    EXPECT_FALSE(reader.expects_continue());
    std::unique_ptr<Request> request = read("12345");
    ASSERT_TRUE(request);
    reader.reclaim_head(std::move(request), reader.head_number());
  }
}

TEST_F(RepeatedHeadTest, LargeHeadIsNotKept) {
  const std::string large = repeatable_post("12345", "X-Large: " + std::string(5000, 'x') + "\r\n");
  read_first(large);
  const auto request = read(large);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->attachment, nullptr);
}

TEST_F(RepeatedHeadTest, HeadIsParsedAgainAfterItsMemoryWasReleased) {
  read_first(repeatable_post("first"));
  reader.release_spare_memory();
  const auto request = read(repeatable_post("later"));
  ASSERT_TRUE(request);
  EXPECT_EQ(request->attachment, nullptr);
}

// ---- the server -------------------------------------------------------------------------------------------

// Responds with whether the request had an attachment, and attaches one.
void respond_with_attachment(std::shared_ptr<Exchange> exchange) {
  const Request& request = exchange->request();
  const bool attached = request.attachment != nullptr;
  request.attachment = std::make_shared<Attachment>();
  exchange->respond(
      Response::text(200, (attached ? "attached " : "new ") + std::string(request.body.view())));
}

std::string to_path(std::string_view path, std::string_view fields, std::string_view body) {
  return "POST " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n" + std::string(fields) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

TEST(RepeatedHeadServerTest, AttachmentLastsWhileHeadIsRepeated) {
  HttpServer server;
  server.route("/a", respond_with_attachment);
  RawClient client = server.client();
  EXPECT_EQ(client.request(to_path("/a", "", "one")).body, "new one");
  EXPECT_EQ(client.request(to_path("/a", "", "three")).body, "attached three");
  EXPECT_EQ(client.request(to_path("/a", "X: y\r\n", "four")).body, "new four");
  EXPECT_EQ(client.request(to_path("/a", "", "five")).body, "new five");
  RawClient other = server.client();
  EXPECT_EQ(other.request(to_path("/a", "", "six")).body, "new six");
}

TEST(RepeatedHeadServerTest, PipelinedRepeatedRequestsAreAnsweredInOrder) {
  HttpServer server;
  server.route("/a", respond_with_attachment);
  RawClient client = server.client();
  std::string all;
  for (int i = 100; i < 300; ++i) all += to_path("/a", "", std::to_string(i));
  ASSERT_TRUE(client.send(all));
  for (int i = 100; i < 300; ++i)
    ASSERT_EQ(client.read_response().body, (i == 100 ? "new " : "attached ") + std::to_string(i));
}

TEST(RepeatedHeadServerTest, RejectedHostIsRejectedAgain) {
  HttpServer server;
  server.route("/a", respond_with_attachment);
  RawClient client = server.client();
  const std::string request = "POST /a HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n";
  EXPECT_EQ(client.request(request).status, 403);
  EXPECT_EQ(client.request(request).status, 403);
  EXPECT_EQ(client.request(to_path("/a", "", "")).status, 200);
  EXPECT_EQ(client.request(request).status, 403);
}

TEST(RepeatedHeadServerTest, AllowedOriginGetsHeadersEachTime) {
  HttpServer server;
  server.route("/a", respond_with_attachment);
  RawClient client = server.client();
  const std::string request = to_path("/a", "Origin: http://localhost:1\r\n", "");
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(client.request(request).has("Access-Control-Allow-Origin: http://localhost:1"));
}

// Accepts every request until it is told to reject them.
class Switch final : public Authenticator {
 public:
  explicit Switch(std::shared_ptr<std::atomic<int>> calls) : calls_(std::move(calls)) {}
  Task<Authentication> authenticate(const Request&) override { co_return Authentication(Response(500)); }
  std::optional<Authentication> authenticate_now(const Request&) override {
    if (++*calls_ > 2) return Authentication(Response(401));
    return Authentication(std::make_shared<const Principal>());
  }

 private:
  std::shared_ptr<std::atomic<int>> calls_;
};

TEST(RepeatedHeadServerTest, EveryRepeatedRequestIsAuthenticated) {
  const auto calls = std::make_shared<std::atomic<int>>(0);
  ServerOptions options;
  options.authenticator = std::make_shared<Switch>(calls);
  HttpServer server(std::move(options));
  server.route("/a", respond_with_attachment);
  RawClient client = server.client();
  EXPECT_EQ(client.request(to_path("/a", "", "1")).body, "new 1");
  EXPECT_EQ(client.request(to_path("/a", "", "2")).body, "attached 2");
  EXPECT_EQ(client.request(to_path("/a", "", "3")).status, 401);
  EXPECT_EQ(*calls, 3);
}

}  // namespace
}  // namespace fairlead::http
