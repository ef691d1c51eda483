// WebSocket frames by RFC 6455.
#include "http/websocket.hpp"

#include <gtest/gtest.h>

#include "support/support.hpp"

namespace fairlead::http::websocket {
namespace {

using EventType = Decoder::EventType;

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text.push_back(static_cast<char>(value));
  return text;
}
// Returns a masked frame of a client: `first` is its first byte, the mask is 1 2 3 4.
std::string masked(int first, const std::string& payload) {
  std::string frame = unmasked_frame_head(Opcode::text, payload.size());
  frame[0] = static_cast<char>(first);
  frame[1] = static_cast<char>(frame[1] | '\x80');
  frame += "\x01\x02\x03\x04";
  for (std::size_t i = 0; i < payload.size(); ++i)
    frame.push_back(static_cast<char>(payload[i] ^ static_cast<char>(i % 4 + 1)));
  return frame;
}
Decoder::Event event_of(Role role, const std::string& input, std::size_t max = 1000) {
  Decoder decoder(role, max);
  decoder.feed(input);
  return decoder.next();
}

TEST(WebSocketTest, DecodesExamplesOfRfc6455) {
  EXPECT_EQ(event_of(Role::client, bytes({0x81, 0x05, 'H', 'e', 'l', 'l', 'o'})).payload, "Hello");
  EXPECT_EQ(event_of(Role::server, bytes({0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58}))
                .payload,
            "Hello");
  EXPECT_EQ(event_of(Role::client, bytes({0x01, 0x03, 'H', 'e', 'l', 0x80, 0x02, 'l', 'o'})).payload,
            "Hello");
  const Decoder::Event ping = event_of(Role::client, bytes({0x89, 0x05, 'H', 'e', 'l', 'l', 'o'}));
  EXPECT_EQ(ping.type, EventType::ping);
  EXPECT_EQ(ping.payload, "Hello");
  EXPECT_EQ(accept_header_value("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST(WebSocketTest, DecodesByteByByte) {
  const std::string input = masked(0x01, "frag") + masked(0x89, "p") + masked(0x00, "men") +
                            masked(0x80, "ted") + masked(0x81, std::string(300, 'x')) +
                            masked(0x88, bytes({0x03, 0xe8}) + "bye");
  Decoder decoder(Role::server, 1000);
  std::vector<std::string> seen;
  for (const char c : input) {
    decoder.feed(std::string_view(&c, 1));
    for (Decoder::Event event = decoder.next(); event.type != EventType::need_more; event = decoder.next()) {
      seen.push_back(std::to_string(static_cast<int>(event.type)) + event.payload +
                     std::to_string(event.code));
      if (event.type == EventType::closed) break;
    }
  }
  EXPECT_EQ(seen,
            (std::vector<std::string>{"2p0", "1fragmented0", "1" + std::string(300, 'x') + "0", "4bye1000"}));
  EXPECT_EQ(decoder.buffered_bytes(), 0u);
}

TEST(WebSocketTest, DecoderFreesMemoryOfLargeMessages) {
  const std::string message = masked(0x81, std::string(4u << 20, 'x'));
  for (const std::string next : {"", "\x81"}) {
    Decoder decoder(Role::server, 8u << 20);
    const std::size_t before = test::allocated_bytes();
    decoder.feed(message);
    decoder.feed(next);
    EXPECT_EQ(decoder.next().payload.size(), 4u << 20);
    EXPECT_LT(test::allocated_bytes(), before + (100u << 10));
    EXPECT_EQ(decoder.buffered_bytes(), next.size());
  }
}

TEST(WebSocketTest, InvalidFramesFailWithTheirStatusCode) {
  const auto code = [](const std::string& input) {
    const Decoder::Event event = event_of(Role::server, input);
    return event.type == EventType::failed ? event.code : 0;
  };
  EXPECT_EQ(code(bytes({0x81, 0x05})), kProtocolError);  // not masked
  EXPECT_EQ(code(masked(0xc1, "x")), kProtocolError);    // reserved bit
  EXPECT_EQ(code(masked(0x83, "x")), kProtocolError);    // unknown opcode
  EXPECT_EQ(code(masked(0x8b, "x")), kProtocolError);
  EXPECT_EQ(code(masked(0x80, "x")), kProtocolError);  // continuation without a message
  EXPECT_EQ(code(masked(0x01, "x") + masked(0x81, "y")),
            kProtocolError);                           // new message inside a fragmented one
  EXPECT_EQ(code(masked(0x09, "x")), kProtocolError);  // fragmented ping
  EXPECT_EQ(code(masked(0x89, std::string(126, 'x'))), kProtocolError);  // ping over 125 bytes
  EXPECT_EQ(code(masked(0x82, "x")), kUnsupportedData);                  // binary
  EXPECT_EQ(code(masked(0x81, "\xff")), kInvalidPayload);
  EXPECT_EQ(code(masked(0x88, "x")), kProtocolError);                  // incomplete status code
  EXPECT_EQ(code(masked(0x88, bytes({0x03, 0xed}))), kProtocolError);  // 1005 is never sent
  EXPECT_EQ(code(masked(0x88, bytes({0x03, 0xe8}) + "\xff")), kInvalidPayload);
  EXPECT_EQ(code(bytes({0x81, 0xfe, 0x00, 0x05, 1, 2, 3, 4})),
            kProtocolError);  // length not minimally encoded
  EXPECT_EQ(code(bytes({0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 5, 1, 2, 3, 4})), kProtocolError);
  EXPECT_EQ(event_of(Role::client, masked(0x81, "x")).code, kProtocolError);  // masked frame of a server
}

TEST(WebSocketTest, MessageOverLimitIsRejectedAtItsHead) {
  EXPECT_EQ(event_of(Role::client, unmasked_frame_head(Opcode::text, 1001)).code, kMessageTooBig);
  EXPECT_EQ(
      event_of(Role::server, masked(0x01, std::string(600, 'x')) + masked(0x80, std::string(401, 'x'))).code,
      kMessageTooBig);
  EXPECT_EQ(event_of(Role::client, unmasked_frame_head(Opcode::text, 1000)).type, EventType::need_more);
}

TEST(WebSocketTest, CharacterSplitAcrossFragmentsIsValid) {
  const std::string e_acute = "\xc3\xa9";
  EXPECT_EQ(
      event_of(Role::server, masked(0x01, e_acute.substr(0, 1)) + masked(0x80, e_acute.substr(1))).payload,
      e_acute);
}

TEST(WebSocketTest, MillionsOfEmptyFragmentsUseNoMemory) {
  std::string input = masked(0x01, "");
  for (int i = 0; i < 200'000; ++i) input += masked(0x00, "");
  EXPECT_EQ(event_of(Role::server, input + masked(0x80, "end")).payload, "end");
}

TEST(WebSocketTest, EachRoleDecodesFramesOfTheOther) {
  for (const std::size_t size : {0u, 1u, 125u, 126u, 65535u, 65536u, 200'000u}) {
    const std::string text(size, 'x');
    for (const Role from : {Role::client, Role::server}) {
      const Role to = from == Role::client ? Role::server : Role::client;
      const Decoder::Event event =
          event_of(to, std::string(text_frame(from, test::rope(text)).joined().view()), 1u << 20);
      EXPECT_EQ(event.type, EventType::message);
      EXPECT_EQ(event.payload, text);
    }
  }
  EXPECT_EQ(event_of(Role::server, close_frame(Role::client, kGoingAway, "later")).code, kGoingAway);
  EXPECT_EQ(event_of(Role::client, close_frame(Role::server, kNoStatus, "")).code, kNoStatus);
  EXPECT_EQ(event_of(Role::client, control_frame(Role::server, Opcode::pong, "p")).type, EventType::pong);
  EXPECT_NE(make_client_key(), make_client_key());
}

}  // namespace
}  // namespace fairlead::http::websocket
