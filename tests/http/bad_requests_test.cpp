// R8.2: ambiguous and malformed requests are rejected, and the connection is closed after the response.
#include <gtest/gtest.h>

#include "http/raw_client.hpp"
#include "http/request_reader.hpp"
#include "support/support.hpp"

namespace fairlead::http {
namespace {

using test::HttpServer;
using test::RawClient;

constexpr std::size_t kMaxHeaderBytes = 4096;
constexpr std::size_t kMaxBodyBytes = 1000;

struct Case {
  std::string name;
  std::string bytes;
  int status;
  std::string message;  // contained in the body of the response
};

std::string with(std::string_view fields, std::string_view body = "") {
  return "POST /echo HTTP/1.1\r\nHost: localhost\r\n" + std::string(fields) + "\r\n" + std::string(body);
}

std::string chunked(std::string_view body) {
  return with("Transfer-Encoding: chunked\r\n", body);
}

const std::vector<Case>& cases() {
  static const std::string nul("X: a\0b\r\n", 8);
  static const std::vector<Case> all = {
      {"LengthAndCoding", with("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), 400,
       "both"},
      {"CodingAndLength", with("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"), 400,
       "both"},
      {"TwoLengthsThatDiffer", with("Content-Length: 5\r\nContent-Length: 6\r\n", "hello!"), 400,
       "more than one"},
      {"TwoLengthsAlike", with("Content-Length: 5\r\nContent-Length: 5\r\n", "hello"), 400, "more than one"},
      {"LengthsInAList", with("Content-Length: 5, 5\r\n", "hello"), 400, "not a number"},
      {"SignedLength", with("Content-Length: +5\r\n", "hello"), 400, "not a number"},
      {"NegativeLength", with("Content-Length: -5\r\n"), 400, "not a number"},
      {"EmptyLength", with("Content-Length:\r\n"), 400, "not a number"},
      {"HexLength", with("Content-Length: 0x5\r\n", "hello"), 400, "not a number"},
      {"LengthWithABlankInside", with("Content-Length: 5 0\r\n", "hello"), 400, "not a number"},
      {"HugeLength", with("Content-Length: 99999999999999999999999999\r\n"), 413, "max_body_bytes (1000)"},
      {"LengthOverTheLimit", with("Content-Length: 1001\r\n"), 413, "max_body_bytes (1000)"},
      {"TwoCodings", with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400,
       "more than one"},
      {"GzipCoding", with("Transfer-Encoding: gzip, chunked\r\n"), 501, "chunked"},
      {"UnknownCoding", with("Transfer-Encoding: xchunked\r\n"), 501, "chunked"},
      {"HiddenCoding",
       with("Transfer-Encoding: \x0b"
            "chunked\r\n"),
       400, "control"},
      {"IdentityCoding", with("Transfer-Encoding: identity\r\nContent-Length: 5\r\n", "hello"), 501,
       "chunked"},
      {"CodingInHttp10", "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400,
       "HTTP/1.0"},
      {"SpaceBeforeColon", with("Content-Length : 5\r\n", "hello"), 400, "Name: value"},
      {"FoldedLine", with("X: a\r\n b\r\n"), 400, "Name: value"},
      {"FoldedByTab", with("X: a\r\n\tTransfer-Encoding: chunked\r\n"), 400, "Name: value"},
      {"NoColon", with("Nonsense\r\n"), 400, "Name: value"},
      {"NoName", with(": value\r\n"), 400, "Name: value"},
      {"NulInValue", with(nul), 400, "control"},
      {"CrInValue", with("X: a\rb\r\n"), 400, "control"},
      {"BareLfInHead", with("X: a\nY: b\r\n"), 400, "CR LF"},
      {"BareLfEverywhere", "GET /echo HTTP/1.1\nHost: localhost\n\n", 400, "CR LF"},
      {"BareLfAtTheEnd", "GET /echo HTTP/1.1\r\nHost: localhost\r\n\n", 400, "CR LF"},
      {"NoHost", "GET /echo HTTP/1.1\r\n\r\n", 400, "Host"},
      {"TwoHosts", with("Host: localhost\r\n"), 400, "Host"},
      {"NotHttp", "\x16\x03\x01\x02\r\n\r\n", 400, "request line"},
      {"NoVersion", "GET /echo\r\n\r\n", 400, "request line"},
      {"Http2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "HTTP/1.1"},
      {"Http12", "GET /echo HTTP/1.2\r\nHost: localhost\r\n\r\n", 505, "HTTP/1.1"},
      {"TwoBlanks", "GET  /echo HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "target"},
      {"TabAsBlank", "GET\t/echo HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "request line"},
      {"TargetWithABlank", "GET /ec ho HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "target"},
      {"TargetNotAPath", "GET echo HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "path"},
      {"Connect", "CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "path"},
      {"MethodNotAToken", "GE(T /echo HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "request line"},
      {"OnlyEmptyLines", "\r\n\r\n\r\n", 400, "request line"},
      {"HeaderBomb", with("X: " + std::string(kMaxHeaderBytes, 'a') + "\r\n"), 431,
       "max_header_bytes (4096)"},
      {"ManyHeaders", with([] {
         std::string many;
         for (int i = 0; i < 1000; ++i) many += "X" + std::to_string(i) + ": a\r\n";
         return many;
       }()),
       431, "max_header_bytes (4096)"},
      {"EndlessRequestLine", "GET /" + std::string(2 * kMaxHeaderBytes, 'a'), 431, "max_header_bytes (4096)"},
      {"GzipBody", with("Content-Encoding: gzip\r\nContent-Length: 3\r\n", "abc"), 415, "Content-Encoding"},
      {"UnknownExpectation", with("Expect: miracles\r\n"), 417, "100-continue"},
      {"ChunkSizeNotHex", chunked("xyz\r\nabc\r\n0\r\n\r\n"), 400, "chunks"},
      {"ChunkSizeEmpty", chunked("\r\nabc\r\n0\r\n\r\n"), 400, "chunks"},
      {"ChunkSizeSigned", chunked("+3\r\nabc\r\n0\r\n\r\n"), 400, "chunks"},
      {"ChunkSizeNegative", chunked("-3\r\nabc\r\n0\r\n\r\n"), 400, "chunks"},
      {"ChunkSizeWithPrefix", chunked("0x3\r\nabc\r\n0\r\n\r\n"), 400, "chunks"},
      {"ChunkSizeWithBlank", chunked("3 \r\nabc\r\n0\r\n\r\n"), 400, "chunks"},
      {"ChunkSizeWithBareLf", chunked("3\nabc\r\n0\r\n\r\n"), 400, "chunks"},
      {"ChunkSizeHuge", chunked("fffffffffffffffffffff\r\n"), 413, "max_body_bytes (1000)"},
      {"ChunkSizeOverflowing", chunked("ffffffffffffffff\r\n"), 413, "max_body_bytes (1000)"},
      {"ChunkSizeLong", chunked(std::string(2000, '0')), 400, "chunks"},
      {"ChunkDataTooLong", chunked("3\r\nabcd\r\n0\r\n\r\n"), 400, "chunks"},
      {"ChunkDataWithoutEnd", chunked("3\r\nabc0\r\n\r\n"), 400, "chunks"},
      {"ChunkExtensionWithNul", chunked(std::string("3;\0\r\nabc\r\n0\r\n\r\n", 16)), 400, "chunks"},
      {"ChunksOverTheLimit", chunked("1f4\r\n" + std::string(500, 'a') + "\r\n1f5\r\n"), 413,
       "max_body_bytes (1000)"},
      {"TrailerMalformed", chunked("0\r\nnonsense\r\n\r\n"), 400, "chunks"},
      {"TrailerBomb", chunked("0\r\nX: " + std::string(2 * kMaxHeaderBytes, 'a') + "\r\n\r\n"), 431,
       "max_header_bytes (4096)"},
      {"TrailerBombInLines",
       chunked("0\r\n" +
               [] {
                 std::string many;
                 for (int i = 0; i < 1000; ++i) many += "X: aaaaa\r\n";
                 return many;
               }()),
       431, "max_header_bytes (4096)"},
  };
  return all;
}

class BadRequestTest : public testing::TestWithParam<Case> {};

TEST_P(BadRequestTest, IsRejectedAndConnectionIsClosed) {
  ServerOptions options;
  options.max_header_bytes = kMaxHeaderBytes;
  options.max_body_bytes = kMaxBodyBytes;
  HttpServer server(std::move(options));
  std::atomic<int> handled = 0;
  server.route("/echo", [&](std::shared_ptr<Exchange> exchange) {
    ++handled;
    exchange->respond(Response(200));
  });
  RawClient client = server.client();
  // The request that follows the malformed one must not be served.
  client.send(GetParam().bytes + "GET /echo HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const auto response = client.read_response();
  EXPECT_EQ(response.status, GetParam().status) << response.body;
  EXPECT_NE(response.body.find(GetParam().message), std::string::npos) << response.body;
  EXPECT_TRUE(response.body.starts_with(R"({"jsonrpc":"2.0","error":{"code":-32000,"message":")"));
  EXPECT_TRUE(response.has("Connection: close"));
  EXPECT_TRUE(client.closed_by_server());
  EXPECT_EQ(handled, 0);
}

// The outcome does not depend on how the input is split.
TEST_P(BadRequestTest, IsRejectedWhenSentInPieces) {
  for (const std::size_t piece : {1u, 2u, 3u, 7u, 100u}) {
    RequestReader reader(kMaxHeaderBytes, kMaxBodyBytes);
    const std::string_view bytes = GetParam().bytes;
    for (std::size_t at = 0; at < bytes.size() && reader.state() != RequestReader::State::refused;
         at += piece) {
      reader.feed(bytes.substr(at, piece));
      ASSERT_NE(reader.state(), RequestReader::State::complete);
    }
    ASSERT_EQ(reader.state(), RequestReader::State::refused) << piece;
    EXPECT_EQ(reader.refusal().status, GetParam().status);
  }
}

INSTANTIATE_TEST_SUITE_P(Http, BadRequestTest, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

TEST(RequestReaderTest, ConsumesExactlyOneRequestInPiecesOfAnySize) {
  const std::string first =
      "\r\nPOST /a?b HTTP/1.1\r\nhOsT: h:1\r\nX:\t a b \t\r\nEmpty:\r\nContent-Length: 5\r\n\r\nhello";
  const std::string second =
      "PUT /c HTTP/1.1\r\nHost: h\r\ntransfer-encoding: Chunked\r\n\r\n0005;ext=\"x\"\r\nworld\r\n0\r\nT: "
      "t\r\n\r\n";
  const std::string third = "GET https://other.example/d HTTP/1.1\r\nHost: h\r\nConnection: x, CLOSE\r\n\r\n";
  const std::string all = first + second + third;
  for (std::size_t piece = 1; piece <= all.size(); ++piece) {
    RequestReader reader(4096, 4096);
    std::vector<std::string> seen;
    std::string left;
    for (std::size_t at = 0; at < all.size(); at += piece) {
      left += all.substr(at, piece);
      while (!left.empty()) {
        const std::size_t consumed = reader.feed(left);
        left.erase(0, consumed);
        if (reader.state() != RequestReader::State::complete) break;
        const std::unique_ptr<Request> request = reader.extract_request();
        seen.push_back(request->method + " " + request->target + " " + std::string(request->body.view()) +
                       " " + reader.authority() + " " + std::string(request->headers.get("x")) +
                       (request->headers.has("empty") ? " empty" : "") +
                       (reader.keep_alive() ? " keep" : ""));
      }
    }
    ASSERT_EQ(seen, (std::vector<std::string>{"POST /a?b hello h:1 a b empty keep", "PUT /c world h  keep",
                                              "GET /d  other.example "}))
        << piece;
  }
}

TEST(LargeBadRequestTest, HundredMegabyteBodyIsRejectedWithoutBuffering) {
  HttpServer server;
  server.route("/echo", [](std::shared_ptr<Exchange> exchange) { exchange->respond(Response(200)); });
  const std::size_t before = test::allocated_bytes();
  const std::string megabyte(1u << 20, 'x');
  for (const bool announced : {true, false}) {
    RawClient client = server.client();
    client.send(announced ? with("Content-Length: 104857600\r\n") : chunked("6400000\r\n"));
    for (int i = 0; i < 100; ++i) {
      if (!client.send(megabyte)) break;  // the server may close the connection
    }
    EXPECT_EQ(client.read_response().status, 413);
  }
  EXPECT_LT(test::allocated_bytes(), before + (16u << 20));
  EXPECT_EQ(server.client().request(with("")).status, 200);
}

TEST(LargeBadRequestTest, BodyInTinyChunksIsRejectedAtLimit) {
  HttpServer server;
  server.route("/echo", [](std::shared_ptr<Exchange> exchange) { exchange->respond(Response(200)); });
  RawClient client = server.client();
  client.send(chunked(""));
  std::string chunks;
  for (int i = 0; i < 100'000; ++i) chunks += "1\r\nx\r\n";
  for (int i = 0; i < 50; ++i) {
    if (!client.send(chunks)) break;
  }
  EXPECT_EQ(client.read_response().status, 413);
}

}  // namespace
}  // namespace fairlead::http
