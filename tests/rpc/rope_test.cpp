// Serialization of messages (R1.1, R1.2), and forwarding of messages with another id (R1.6).
#include "fairlead/rpc/rope.hpp"

#include <gtest/gtest.h>

#include <string>

#include "fairlead/json/view.hpp"

namespace fairlead::rpc {
namespace {

std::string text(const Rope& rope) {
  const std::string joined(rope.joined().view());
  EXPECT_EQ(rope.size(), joined.size());
  return joined;
}

json::Raw raw(std::string_view json) {
  return *json::Raw::parse(json);
}

Message parse(std::string_view frame) {
  return Message::parse(Bytes::copy_of(frame));
}

bool has_part_at(const Rope& rope, const char* data) {
  bool found = false;
  rope.each([&](const Bytes& part) { found = found || part.data() == data; });
  return found;
}

TEST(RopeTest, WritesEveryKindOfMessage) {  // R1.1
  EXPECT_EQ(text(make_request("1", "m", raw("[1]"))),
            R"({"jsonrpc":"2.0","id":1,"method":"m","params":[1]})");
  EXPECT_EQ(text(make_notification("m", raw("{}"))), R"({"jsonrpc":"2.0","method":"m","params":{}})");
  EXPECT_EQ(text(make_response("\"a\"", raw("1.0"))), R"({"jsonrpc":"2.0","id":"a","result":1.0})");
  EXPECT_EQ(text(make_error("1", -5, "no", "[0]")),
            R"({"jsonrpc":"2.0","id":1,"error":{"code":-5,"message":"no","data":[0]}})");
}

TEST(RopeTest, OmitsAbsentMembers) {  // R1.2
  EXPECT_EQ(text(make_request("1", "m", json::Raw())), R"({"jsonrpc":"2.0","id":1,"method":"m"})");
  EXPECT_EQ(text(make_notification("m", json::Raw())), R"({"jsonrpc":"2.0","method":"m"})");
  EXPECT_EQ(text(make_error("null", -32700, "Parse error")),
            R"({"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}})");
  EXPECT_EQ(text(make_error("", 1, "x")), R"({"jsonrpc":"2.0","error":{"code":1,"message":"x"}})");
}

TEST(RopeTest, WritesAbsentResultAsNull) {  // a response requires a result
  EXPECT_EQ(text(make_response("1", json::Raw())), R"({"jsonrpc":"2.0","id":1,"result":null})");
}

TEST(RopeTest, EscapesMethodsAndMessages) {
  EXPECT_EQ(parse(text(make_request("1", "a\"\n\\é", json::Raw()))).method(), "a\"\n\\é");
  EXPECT_EQ(parse(text(make_notification("a\"b", json::Raw()))).method(), "a\"b");
  EXPECT_EQ(parse(text(make_error("1", 1, "a\"\r\n\xff"))).remote_error().message(), "a\"\r\n\xef\xbf\xbd");
}

TEST(RopeTest, KeepsSpellingOfIds) {  // R1.3
  for (const std::string_view id : {"1", "1.0", "1e3", "-0", "\"1\"", "\"\"", "\"\\u0061\\n\"",
                                    "9223372036854775808", "123456789012345678901234567890", "null"}) {
    EXPECT_EQ(parse(text(make_response(id, raw("1")))).id(), id);
    EXPECT_EQ(parse(text(make_error(id, 1, "x"))).id(), id);
    EXPECT_EQ(parse(text(make_request(id, "m", raw("[]")))).id(), id);
  }
}

TEST(RopeTest, WritesValuesByteForByte) {  // R1.6
  for (const std::string_view value :
       {R"({"z":1,"a":9007199254740993,"a":1e400})", R"(["\u00e9\/", -0, 1.0 ])"}) {
    EXPECT_EQ(parse(text(make_request("1", "m", raw(value)))).params_text(), value);
    EXPECT_EQ(parse(text(make_response("1", raw(value)))).result_text(), value);
    EXPECT_EQ(parse(text(make_error("1", 1, "x", value))).remote_error().detail().rpc_data, value);
  }
}

TEST(RopeTest, SharesLargeBody) {
  const json::Raw large = raw("\"" + std::string(100'000, 'x') + "\"");
  const json::Raw list = raw("[\"" + std::string(100'000, 'x') + "\"]");
  const Rope request = make_request("1", "m", list);
  const Rope notification = make_notification("m", list);
  const Rope response = make_response("1", large);
  EXPECT_TRUE(has_part_at(request, list.text().data()));
  EXPECT_TRUE(has_part_at(notification, list.text().data()));
  EXPECT_TRUE(has_part_at(response, large.text().data()));
  EXPECT_EQ(parse(text(request)).params_text(), list.text());
  EXPECT_EQ(parse(text(notification)).params_text(), list.text());
  EXPECT_EQ(parse(text(response)).result_text(), large.text());
}

TEST(RopeTest, IsCorrectAtSizesNearSharingThreshold) {
  for (std::size_t size = 4000; size < 4200; ++size) {
    const json::Raw body = raw("[\"" + std::string(size, 'x') + "\"]");
    EXPECT_EQ(text(make_response("1", body)),
              "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":" + std::string(body.text()) + "}");
    const std::string frame =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":" + std::string(body.text()) + "}";
    EXPECT_EQ(text(with_id(parse(frame), "2")),
              "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"m\",\"params\":" + std::string(body.text()) + "}");
  }
}

// ---- with_id ---------------------------------------------------------------------------------------------

TEST(WithIdTest, ReplacesOnlyId) {  // R1.6
  const std::string filler(10'000, 'x');
  for (const std::string& extra : {std::string(), filler}) {
    const std::string more = ",\"x\":{\"id\":1,\"big\":9007199254740993,\"s\":\"" + extra + "\"}";
    for (const std::string& shape :
         {"{\"jsonrpc\":\"2.0\",\"id\":@,\"method\":\"m\"" + more + "}",
          "{\"id\":@,\"jsonrpc\":\"2.0\",\"method\":\"m\"" + more + "}",
          " { \"method\" : \"m\\u0065\" " + more + " , \"jsonrpc\":\"2.0\" , \"\\u0069d\" : @ } ",
          "{\"jsonrpc\":\"2.0\",\"id\":@,\"result\":[ 1 , 1.0 ]" + more + "}",
          "{\"jsonrpc\":\"2.0\"" + more + ",\"error\":{\"code\":1,\"message\":\"x\"},\"id\":@}"}) {
      const std::size_t at = shape.find('@');
      for (const std::string_view before : {"1", "\"a-long-id-of-the-other-side\"", "1e3", "null"}) {
        for (const std::string_view after : {"7", "\"x\"", "18446744073709551615"}) {
          const std::string head = shape.substr(0, at);
          const std::string tail = shape.substr(at + 1);
          const Message message = parse(head + std::string(before) + tail);
          ASSERT_FALSE(message.is(Kind::malformed)) << message.problem().message();
          EXPECT_EQ(text(with_id(message, after)), head + std::string(after) + tail);
        }
      }
    }
  }
}

TEST(WithIdTest, SharesLargeMessage) {
  const Message message = parse("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":[\"" +
                                std::string(100'000, 'x') + "\"]}");
  const Rope rope = with_id(message, "2");
  EXPECT_TRUE(has_part_at(rope, message.frame().data()));
  EXPECT_TRUE(has_part_at(rope, message.id().data() + 1));
}

TEST(WithIdTest, ReplacesIdInMessageOfBatch) {
  const Message batch =
      parse(R"([{"jsonrpc":"2.0","id":1,"method":"a"}, {"jsonrpc":"2.0","id":2,"method":"b"}])");
  ASSERT_EQ(batch.kind(), Kind::batch);
  EXPECT_EQ(text(with_id(batch.batch()[1], "\"z\"")), R"({"jsonrpc":"2.0","id":"z","method":"b"})");
}

// ---- line breaks -----------------------------------------------------------------------------------------

TEST(RopeTest, OneLineIsFalseIfThereMayBeLineBreak) {  // R2.1
  const std::string_view broken = "{\n\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":[1]}";
  EXPECT_FALSE(Rope(parse(broken)).is_one_line());
  EXPECT_FALSE(with_id(parse(broken), "2").is_one_line());
  EXPECT_FALSE(make_response("1", parse(broken).params()).is_one_line());
  EXPECT_TRUE(Rope(parse(R"({"jsonrpc":"2.0","id":1,"method":"m"})")).is_one_line());
  EXPECT_TRUE(make_request("1", "m\n", json::Raw()).is_one_line());
  EXPECT_FALSE(Rope(Bytes::constant("[\n]")).is_one_line());
}

TEST(RopeTest, AppendedPartMayHaveLineBreak) {
  Rope rope(Bytes::constant("["), true);
  rope.append(Bytes::constant("1"), true);
  EXPECT_TRUE(rope.is_one_line());
  rope.append(Bytes::constant("\n]"));
  EXPECT_FALSE(rope.is_one_line());
  EXPECT_EQ(text(rope), "[1\n]");
}

TEST(RopeTest, DefaultRopeIsEmpty) {
  EXPECT_EQ(Rope().size(), 0u);
  EXPECT_EQ(text(Rope()), "");
}

}  // namespace
}  // namespace fairlead::rpc
