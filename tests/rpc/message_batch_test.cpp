// Batches (R1.5): parsed message by message, limited in number, rejected as a whole if they are not JSON.
#include <string>
#include <vector>

#include "rpc/message_support.hpp"

namespace fairlead::rpc {
namespace {

TEST(MessageTest, ReadsBatchWithEveryKind) {  // R1.5
  const std::string request = with_version(R"("id":"1","method":"sum","params":[1,2,4])");
  const std::string notification = with_version(R"("method":"hello")");
  const std::string response = with_version(R"("id":2,"result":{"a":1})");
  const std::string error = with_version(R"("id":3,"error":{"code":1,"message":"x"})");
  const Message batch = parse("[ " + request + " ,1," + notification + ", [] ,\t" + response + "," + error +
                              ",{\"foo\":\"boo\"} ]");
  ASSERT_EQ(batch.kind(), Kind::batch);
  std::vector<Kind> kinds;
  for (const Message& message : batch.batch()) kinds.push_back(message.kind());
  EXPECT_EQ(kinds, (std::vector{Kind::request, Kind::malformed, Kind::notification, Kind::malformed,
                                Kind::response, Kind::error, Kind::malformed}));
  EXPECT_EQ(batch.batch()[0].frame().view(), request);
  EXPECT_EQ(batch.batch()[0].id(), "\"1\"");
  EXPECT_EQ(batch.batch()[0].params().text(), "[1,2,4]");
  EXPECT_EQ(batch.batch()[1].frame().view(), "1");
  EXPECT_EQ(batch.batch()[3].frame().view(), "[]");
  EXPECT_EQ(batch.batch()[4].result().text(), R"({"a":1})");
  EXPECT_EQ(batch.batch()[5].frame().view(), error);
}

TEST(MessageTest, RejectsEmptyBatch) {  // R1.5
  EXPECT_TRUE(is_invalid_request("[]"));
  EXPECT_TRUE(is_invalid_request(" [ ] "));
}

TEST(MessageTest, RejectsBatchInsideBatch) {
  const Message batch = parse("[[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}]]");
  ASSERT_EQ(batch.kind(), Kind::batch);
  EXPECT_EQ(batch.batch().at(0).kind(), Kind::malformed);
  EXPECT_EQ(batch.batch().at(0).id(), "");
}

TEST(MessageTest, RejectsWholeBatchThatIsNotJson) {
  const std::string request = with_version(R"("id":1,"method":"m")");
  EXPECT_TRUE(is_parse_error("["));
  EXPECT_TRUE(is_parse_error("[}"));
  EXPECT_TRUE(is_parse_error("[,]"));
  EXPECT_TRUE(is_parse_error("[] x"));
  EXPECT_TRUE(is_parse_error("[" + request + ",]"));
  EXPECT_TRUE(is_parse_error("[" + request + ",{\"jsonrpc\":\"2.0\",\"method\"]"));
  EXPECT_TRUE(is_parse_error("[" + request + "]" + request));
}

TEST(MessageTest, LimitsMessagesOfBatch) {
  Limits limits;
  limits.max_batch_messages = 3;
  EXPECT_EQ(parse("[1,2,3]", limits).kind(), Kind::batch);
  const Message over = parse("[1,2,3,4]", limits);
  ASSERT_EQ(over.kind(), Kind::malformed);
  EXPECT_EQ(over.problem().kind(), ErrorKind::validation);
  EXPECT_EQ(over.problem().detail().rpc_code, kInvalidRequest);
  EXPECT_NE(over.problem().message().find("max_batch_messages (3)"), std::string::npos);
  EXPECT_TRUE(is_parse_error("[1,2,3,4,x]", limits));
  EXPECT_TRUE(is_parse_error("[1,2,3,4", limits));
  std::string many = "[1";
  for (int i = 0; i < 1000; ++i) many += ",1";
  EXPECT_NE(problem_with(many + "]").find("max_batch_messages (1000)"), std::string::npos);
}

TEST(MessageTest, MessageKeepsItsBatchAlive) {
  Message one;
  {
    const Message batch =
        parse("[" + with_version("\"id\":\"" + std::string(100, 'i') + "\",\"method\":\"m\"") + "]");
    one = batch.batch().at(0);
  }
  EXPECT_EQ(one.id(), "\"" + std::string(100, 'i') + "\"");
}

}  // namespace
}  // namespace fairlead::rpc
