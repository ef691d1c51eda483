// R8.3: answers of servers, in every form HTTP/1.1 has for them, in pieces of any size.
#include "http/client_response.hpp"

#include <gtest/gtest.h>

namespace fairlead::http {
namespace {

struct Read {
  int status = 0;
  std::string body;
  std::string rest;
  bool done = false;
  bool keep_alive = false;
  std::optional<ErrorKind> problem;

  bool operator==(const Read&) const = default;
};

Read read(std::string_view text, std::size_t piece = std::string_view::npos, bool ends = false) {
  ResponseParser parser;
  Read made;
  while (!text.empty() && !made.problem) {
    const std::string_view now = text.substr(0, piece);
    const Result<void> fed = parser.feed(now, made.body);
    if (!fed) made.problem = fed.error().kind();
    text.remove_prefix(now.size());
  }
  if (ends && !made.problem) {
    const Result<void> ended = parser.at_end();
    if (!ended) made.problem = ended.error().kind();
  }
  made.done = !made.problem && parser.done();
  made.status = parser.has_head() ? parser.head().status : 0;
  if (made.done) {
    made.keep_alive = parser.keep_alive();
    made.rest = parser.take_rest();
  }
  return made;
}

TEST(HttpResponse, EveryBodyFormInPiecesOfAnySize) {
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n";
  const std::string forms[] = {
      head + "Content-Length: 5\r\n\r\nhello",
      head + "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nT: x\r\n\r\n"};
  for (const std::string& form : forms) {
    for (std::size_t piece = 1; piece <= form.size(); ++piece)
      EXPECT_EQ(read(form, piece), (Read{200, "hello", "", true, true, {}}))
          << form << " in pieces of " << piece;
  }
}

TEST(HttpResponse, ABodyMayEndWithTheConnection) {
  const Read made = read("HTTP/1.1 200 OK\r\n\r\nhello", 1, true);
  EXPECT_EQ(made.body, "hello");
  EXPECT_TRUE(made.done);
  EXPECT_FALSE(made.keep_alive);
}

TEST(HttpResponse, ACutBodyIsNotABody) {
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", 99, true).problem, ErrorKind::closed);
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", 99, true).problem,
            ErrorKind::closed);
  EXPECT_EQ(read("HTTP/1.1 200", 99, true).problem, ErrorKind::closed);
}

TEST(HttpResponse, InterimAnswersArePassedOver) {
  const Read made = read(
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.1 202 OK\r\nContent-Length: "
      "0\r\n\r\n",
      3);
  EXPECT_EQ(made.status, 202);
  EXPECT_TRUE(made.done);
}

TEST(HttpResponse, AnUpgradeIsTheEndOfHttp) {
  const Read made =
      read("HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n\x81\x01x");
  EXPECT_EQ(made.status, 101);
  EXPECT_EQ(made.rest, "\x81\x01x");
}

TEST(HttpResponse, ConnectionsThatEndAreNotKept) {
  EXPECT_FALSE(read("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").keep_alive);
  EXPECT_FALSE(read("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n").keep_alive);
  EXPECT_FALSE(read("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nmore").keep_alive);
}

TEST(HttpResponse, WhatIsNotHttpIsRefused) {
  for (const char* const text :
       {"SSH-2.0-OpenSSH\r\n", "HTTP/1.1 2x0 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"}) {
    EXPECT_EQ(read(text).problem, ErrorKind::parse) << text;
  }
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\nA: " + std::string(100'000, 'a')).problem, ErrorKind::frame_too_large);
}

TEST(HttpResponse, AnnouncedSizesOverTheLimitAreRefusedAtOnce) {
  const std::string head = "HTTP/1.1 200 OK\r\n";
  for (const std::string& form : {head + "Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n",
                                  head + "Transfer-Encoding: chunked\r\n\r\n80000001\r\n",
                                  head + "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\nfffffffffffffff0;x\r\n",
                                  head + "Content-Length: 18446744073709551615\r\n\r\n"}) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, form.size()})
      EXPECT_EQ(read(form + "a", piece).problem, ErrorKind::frame_too_large) << form;
  }
  EXPECT_EQ(read(head + "Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n").problem, ErrorKind::parse);
  EXPECT_EQ(read(head + "Transfer-Encoding: chunked\r\n\r\n80000000\r\nab").body, "ab");
}

TEST(HttpResponse, AnnouncedSizeOverTheLimitIsNamedInTheError) {
  ResponseParser parser;
  std::string body;
  const Result<void> fed =
      parser.feed("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n", body);
  ASSERT_FALSE(fed);
  EXPECT_NE(fed.error().message().find("max_announced_bytes (2147483648)"), std::string::npos);
}

}  // namespace
}  // namespace fairlead::http
