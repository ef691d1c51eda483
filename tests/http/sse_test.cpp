#include "http/sse.hpp"

#include <gtest/gtest.h>

namespace fairlead::http {
namespace {

std::string text(const sse::EncodedEvent& parts) {
  std::string all;
  for (const Bytes& part : parts) all += part.view();
  return all;
}
rpc::Rope rope(std::string text) {
  return rpc::Rope(Bytes::adopt(std::move(text)));
}

TEST(SseWriterTest, MessageIsOneEvent) {
  EXPECT_EQ(text(sse::message_event(rope(R"({"a":1})"))), "event: message\ndata: {\"a\":1}\n\n");
  EXPECT_EQ(text(sse::message_event(rope(R"({"a":1})"), "3-7")),
            "id: 3-7\nevent: message\ndata: {\"a\":1}\n\n");
  EXPECT_EQ(text(sse::priming_event("3-0", std::chrono::milliseconds(500))),
            "id: 3-0\nretry: 500\ndata: \n\n");
  EXPECT_EQ(text(sse::endpoint_event("/messages?sessionId=x")),
            "event: endpoint\ndata: /messages?sessionId=x\n\n");
}

TEST(SseWriterTest, LineBreaksBetweenTokensDoNotEndEvent) {
  const std::pair<const char*, const char*> cases[] = {{"{\n\"a\":\"x y\"}", R"({ "a":"x y"})"},
                                                       {"{\"a\":\r\"x y\"}", R"({"a": "x y"})"},
                                                       {"{\"a\":\r\n\"x y\"}", R"({"a":  "x y"})"}};
  for (const auto& [spelled, sent] : cases) {
    EXPECT_EQ(text(sse::message_event(rope(spelled))), "event: message\ndata: " + std::string(sent) + "\n\n");
    EXPECT_EQ(text(json_response(200, rope(spelled)).body), sent);
  }
}

TEST(SseWriterTest, LargeMessageIsNotCopied) {
  const Bytes large = Bytes::adopt("\"" + std::string(100'000, 'x') + "\"");
  const sse::EncodedEvent parts = sse::message_event(rpc::Rope(large, true), "1-1");
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[1].data(), large.data());
}

}  // namespace
}  // namespace fairlead::http
