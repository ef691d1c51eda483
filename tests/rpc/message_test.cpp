// Messages (R1): kinds, spelling of ids, unchanged slices, and malformed messages.
#include "fairlead/rpc/message.hpp"

#include <string>
#include <vector>

#include "rpc/message_support.hpp"

namespace fairlead::rpc {
namespace {

using namespace std::string_literals;

// ---- kinds -----------------------------------------------------------------------------------------------

TEST(MessageTest, ClassifiesEveryKind) {  // R1.1
  EXPECT_EQ(kind_of(R"("id":1,"method":"m")"), Kind::request);
  EXPECT_EQ(kind_of(R"("id":1,"method":"m","params":{})"), Kind::request);
  EXPECT_EQ(kind_of(R"("method":"m")"), Kind::notification);
  EXPECT_EQ(kind_of(R"("method":"m","params":[])"), Kind::notification);
  EXPECT_EQ(kind_of(R"("id":1,"result":null)"), Kind::response);
  EXPECT_EQ(kind_of(R"("id":1,"error":{"code":1,"message":"x"})"), Kind::error);
  EXPECT_EQ(kind_of(R"("id":null,"error":{"code":1,"message":"x"})"), Kind::error);
  EXPECT_EQ(kind_of(R"("error":{"code":1,"message":"x"})"), Kind::error);
  EXPECT_EQ(parse(R"([{"jsonrpc":"2.0","method":"m"}])").kind(), Kind::batch);
  EXPECT_EQ(parse("{}").kind(), Kind::malformed);
}

TEST(MessageTest, AcceptsMembersInAnyOrder) {  // R1.6
  const Message message = parse(R"( { "params" : [1] , "method" : "m" , "id" : 7 , "jsonrpc" : "2.0" } )");
  EXPECT_EQ(message.kind(), Kind::request);
  EXPECT_EQ(message.id(), "7");
  EXPECT_EQ(message.method(), "m");
  EXPECT_EQ(message.params_text(), "[1]");
}

TEST(MessageTest, MissingMembersAreAbsent) {  // R1.2
  const Message message = parse(with_version(R"("id":1,"method":"m")"));
  EXPECT_TRUE(message.params().absent());
  EXPECT_TRUE(message.result().absent());
  EXPECT_TRUE(message.error_object().absent());
}

TEST(MessageTest, ResponseWithoutResultAndErrorHasNullResult) {  // R1.2
  const Message message = parse(with_version(R"("id":1)"));
  EXPECT_EQ(message.kind(), Kind::response);
  EXPECT_EQ(message.result().text(), "null");
  EXPECT_EQ(message.result_text(), "null");
}

TEST(MessageTest, RejectsResultTogetherWithError) {  // R1.1
  EXPECT_TRUE(is_invalid_request(with_version(R"("id":1,"result":1,"error":{"code":1,"message":"x"})"), "1"));
  EXPECT_TRUE(is_invalid_request(with_version(R"("id":1,"error":{},"result":null)"), "1"));
}

TEST(MessageTest, RejectsRequestThatIsAlsoResponse) {
  EXPECT_TRUE(is_invalid_request(with_version(R"("id":1,"method":"m","result":1)"), "1"));
  EXPECT_TRUE(is_invalid_request(with_version(R"("id":1,"error":{},"method":"m")"), "1"));
}

TEST(MessageTest, RejectsObjectWithoutMethodAndId) {
  EXPECT_TRUE(is_invalid_request("{}"));
  EXPECT_TRUE(is_invalid_request(R"({"jsonrpc":"2.0"})"));
  EXPECT_TRUE(is_invalid_request(R"({"foo":"boo"})"));
  EXPECT_TRUE(is_invalid_request(with_version(R"("result":1)")));
  EXPECT_TRUE(is_invalid_request(with_version(R"("params":[])")));
}

TEST(MessageTest, RejectsNonObject) {
  for (const std::string_view text : {"1", "\"x\"", "null", "true", "-0.5", " 1 "})
    EXPECT_TRUE(is_invalid_request(text));
}

TEST(MessageTest, RejectsWrongOrMissingVersion) {  // R1.1
  for (const std::string_view version :
       {"\"1.0\"", "\"2\"", "2.0", "2", "null", "\"2.0 \"", "[\"2.0\"]", "\"\""})
    EXPECT_TRUE(is_invalid_request(R"({"id":1,"method":"m","jsonrpc":)" + std::string(version) + "}", "1"));
  EXPECT_TRUE(is_invalid_request(R"({"id":1,"method":"m"})", "1"));
  EXPECT_TRUE(is_invalid_request(R"({"id":1,"result":1})", "1"));
}

TEST(MessageTest, AcceptsVersionWithEscapes) {
  EXPECT_EQ(parse(R"({"jsonrpc":"2\u002e0","id":1,"method":"m"})").kind(), Kind::request);
}

TEST(MessageTest, RejectsNonStringMethod) {
  for (const std::string_view method : {"1", "null", "{}", "[\"m\"]", "true"})
    EXPECT_TRUE(is_invalid_request(with_version("\"id\":1,\"method\":" + std::string(method)), "1"));
  EXPECT_EQ(kind_of(R"("id":1,"method":"")"), Kind::request);
}

TEST(MessageTest, RejectsScalarParams) {
  for (const std::string_view params : {"1", "null", "\"bar\"", "false"})
    EXPECT_TRUE(
        is_invalid_request(with_version("\"id\":1,\"method\":\"m\",\"params\":" + std::string(params)), "1"));
}

TEST(MessageTest, RejectsNonObjectError) {
  for (const std::string_view error : {"null", "1", "\"failed\"", "[]"})
    EXPECT_TRUE(is_invalid_request(with_version("\"id\":1,\"error\":" + std::string(error)), "1"));
}

// ---- ids -------------------------------------------------------------------------------------------------

TEST(MessageTest, KeepsSpellingOfIds) {  // R1.3
  for (const std::string_view id :
       {"1", "1.0", "1e3", "1E+3", "\"1\"", "\"\"", "-0", "0", "-1", "9223372036854775808",
        "18446744073709551617", "123456789012345678901234567890", "0.1e-400", "\"a\\u0062\\n\\\"\\\\\"",
        "\"\\ud83d\\ude00\"", "\"\\ud800\"", "\"\xc3\xa9\"", "\"null\"", "null"}) {
    const std::string text = with_version("\"id\":" + std::string(id) + ",\"method\":\"m\"");
    EXPECT_EQ(parse(text).kind(), Kind::request) << id;
    EXPECT_EQ(parse(text).id(), id);
    EXPECT_EQ(parse(with_version("\"id\" : " + std::string(id) + " ,\"result\":0")).id(), id);
  }
}

TEST(MessageTest, DistinguishesNullIdFromMissingId) {  // R1.3
  EXPECT_EQ(kind_of(R"("id":null,"method":"m")"), Kind::request);
  EXPECT_EQ(kind_of(R"("method":"m")"), Kind::notification);
  EXPECT_EQ(parse(with_version(R"("id":null,"method":"m")")).id(), "null");
  EXPECT_EQ(parse(with_version(R"("method":"m")")).id(), "");
}

TEST(MessageTest, RejectsIdThatIsNeitherStringNorNumber) {  // R1.3
  for (const std::string_view id : {"true", "false", "[]", "[1]", "{}", "{\"id\":1}"}) {
    EXPECT_TRUE(is_invalid_request(with_version("\"method\":\"m\",\"id\":" + std::string(id))));
    EXPECT_TRUE(is_invalid_request(with_version("\"result\":1,\"id\":" + std::string(id))));
  }
}

// ---- keys ------------------------------------------------------------------------------------------------

TEST(MessageTest, RejectsRepeatedKeys) {
  EXPECT_TRUE(is_invalid_request(R"({"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"m"})", "1"));
  EXPECT_TRUE(is_invalid_request(with_version(R"("id":1,"method":"m","method":"n")"), "1"));
  EXPECT_TRUE(is_invalid_request(with_version(R"("id":1,"method":"m","params":[],"params":[])"), "1"));
  EXPECT_TRUE(is_invalid_request(with_version(R"("id":1,"result":1,"result":1)"), "1"));
  EXPECT_TRUE(is_invalid_request(with_version(R"("id":1,"error":{},"error":{})"), "1"));
}

TEST(MessageTest, RepeatedIdIsNotUsed) {
  EXPECT_TRUE(is_invalid_request(with_version(R"("id":1,"method":"m","id":2)")));
  EXPECT_TRUE(is_invalid_request(with_version(R"("id":1,"id":1,"id":1,"result":0)")));
  EXPECT_TRUE(is_invalid_request(with_version(R"("id":1,"\u0069d":2,"method":"m")")));
}

TEST(MessageTest, DecodesEscapesInKeys) {
  const Message message =
      parse("{\"jsonrpc\":\"2.0\",\"\\u0069d\":1,\"meth\\u006fd\":\"m\",\"par\\u0061ms\":[1]}");
  EXPECT_EQ(message.kind(), Kind::request);
  EXPECT_EQ(message.method(), "m");
  EXPECT_EQ(message.params_text(), "[1]");
  EXPECT_TRUE(is_invalid_request(with_version("\"id\":1,\"method\":\"a\",\"meth\\u006fd\":\"b\""), "1"));
}

TEST(MessageTest, IgnoresKeysThatLookSimilar) {
  const Message message = parse(with_version(R"("id":1,"method":"m","ID":2,"Method":"n","id ":3,"parms":4)"));
  EXPECT_EQ(message.kind(), Kind::request);
  EXPECT_EQ(message.id(), "1");
  EXPECT_TRUE(message.params().absent());
}

TEST(MessageTest, AcceptsRepeatedKeysInsideParams) {  // R1.6
  const Message message = parse(with_version(R"("id":1,"method":"m","params":{"id":2,"id":3,"method":"x"})"));
  EXPECT_EQ(message.kind(), Kind::request);
  EXPECT_EQ(message.id(), "1");
  EXPECT_EQ(message.params_text(), R"({"id":2,"id":3,"method":"x"})");
}

TEST(MessageTest, DecodesEscapesInMethod) {
  EXPECT_EQ(parse(with_version(R"("id":1,"method":"sys\u0074em.\u00e9\/\n")")).method(),
            "system.\xc3\xa9/\n");
  EXPECT_EQ(parse(with_version(R"("id":1,"method":"a\u0000b")")).method(), "a\0b"s);
}

// ---- slices ----------------------------------------------------------------------------------------------

TEST(MessageTest, ReturnsSlicesByteForByte) {  // R1.6
  for (const std::string_view value :
       {R"({"z":1,"a":2})", R"([9007199254740993,123456789012345678901234567890,1e400,-0,1.0,1E+2])",
        R"({"\u0061":"\u00e9\ud83d\ude00\/","k":"é","_meta":{"x":[ 1 ,  2 ]}})", "[ ]", "{\t}"}) {
    const std::string v(value);
    EXPECT_EQ(parse(with_version("\"id\":1,\"method\":\"m\",\"params\": " + v)).params().text(), value);
    EXPECT_EQ(parse(with_version("\"id\":1,\"result\": " + v + " ")).result().text(), value);
    const Message error =
        parse(with_version("\"id\":1,\"error\":{\"code\":-1,\"message\":\"x\",\"data\": " + v + "}"));
    EXPECT_EQ(error.remote_error().detail().rpc_data, value);
  }
  for (const std::string_view scalar : {"null", "true", "\"s\"", "1.50", "-0"})
    EXPECT_EQ(parse(with_version("\"id\":1,\"result\":" + std::string(scalar))).result().text(), scalar);
}

TEST(MessageTest, KeepsUnknownMembersInFrame) {  // R1.6
  const std::string text = with_version(R"("trace":"abc","id":1,"method":"m","x":{"y":[1]})");
  const Message message = parse(text);
  EXPECT_EQ(message.kind(), Kind::request);
  EXPECT_EQ(message.frame().view(), text);
}

TEST(MessageTest, SliceKeepsFrameAlive) {
  json::Raw params;
  {
    const Message message =
        parse(with_version("\"id\":1,\"method\":\"m\",\"params\":[\"" + std::string(5000, 'x') + "\"]"));
    params = message.params();
  }
  EXPECT_EQ(params.text().size(), 5004u);
  EXPECT_EQ(params.text().substr(0, 4), "[\"xx");
}

TEST(MessageTest, SharesFrameWithoutCopying) {
  const Bytes frame = Bytes::copy_of(with_version(R"("id":1,"method":"m","params":[1])"));
  const Message message = Message::parse(frame);
  EXPECT_EQ(message.frame().data(), frame.data());
  EXPECT_GE(message.params().text().data(), frame.data());
  EXPECT_LT(message.params().text().data(), frame.data() + frame.size());
}

// ---- remote errors ---------------------------------------------------------------------------------------

TEST(MessageTest, DecodesRemoteError) {
  const Error error =
      parse(
          with_version(R"("id":1,"error":{"code":-32601,"message":"no \u0022x\u0022","data":{"b":1,"a":2}})"))
          .remote_error();
  EXPECT_EQ(error.kind(), ErrorKind::remote);
  EXPECT_EQ(error.message(), "no \"x\"");
  EXPECT_EQ(error.detail().rpc_code, -32601);
  EXPECT_EQ(error.detail().rpc_data, R"({"b":1,"a":2})");
}

TEST(MessageTest, DecodesRemoteErrorWithoutMembers) {
  for (const std::string_view object :
       {"{}", R"({"code":"x","message":1})", R"({"code":1e99})", R"({"code":null})"}) {
    const Error error = parse(with_version("\"id\":1,\"error\":" + std::string(object))).remote_error();
    EXPECT_EQ(error.detail().rpc_code, 0) << object;
    EXPECT_FALSE(error.message().empty());
    EXPECT_EQ(error.detail().rpc_data, "");
  }
}

// ---- invalid JSON ----------------------------------------------------------------------------------------

TEST(MessageTest, RejectsTrailingBytes) {
  const std::string good = with_version(R"("id":1,"method":"m")");
  for (const std::string_view tail : {"x", "{}", ",", "]", "\x01", "1", " x"})
    EXPECT_TRUE(is_parse_error(good + std::string(tail)));
  EXPECT_TRUE(is_parse_error(good + "\0"s));
  EXPECT_TRUE(is_parse_error(good + good));
  EXPECT_EQ(parse(" \t" + good + " \r\n").kind(), Kind::request);
}

TEST(MessageTest, RejectsTruncationAtEveryByte) {
  const std::string good =
      R"({"jsonrpc":"2.0","id":-1.5e3,"method":"a\u0062","params":{"a":[true,null,"é"]},"x":"y"})";
  ASSERT_EQ(parse(good).kind(), Kind::request);
  for (std::size_t cut = 0; cut < good.size(); ++cut) EXPECT_TRUE(is_parse_error(good.substr(0, cut)));
  const std::string batch = "[" + good + "," + good + "]";
  ASSERT_EQ(parse(batch).kind(), Kind::batch);
  for (std::size_t cut = 0; cut < batch.size(); ++cut) EXPECT_TRUE(is_parse_error(batch.substr(0, cut)));
}

// parse() compares the message with one that the step-wise parser has read.
TEST(MessageTest, ReadsChangedObjectsLikeStepwiseParser) {
  const std::vector<std::string> texts = {
      R"({"jsonrpc":"2.0","id":7,"method":"m","params":{"name":"n","a":{"b":[1,true,{}]},"c":-1.5e3}})",
      R"({"jsonrpc" : "2.0", "id":"x" ,"result":{"a key of more than 16 bytes":[[],"a value of more than 16"]} })",
      R"({"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"\n"},"\u0069":null,"é":"é","params":[]})",
      R"({"jsonrpc":"2.0","m\u0065thod":"m","params":{"\"":"\\","b":false,"c":"é"},"x":12345678901})",
  };
  for (const std::string& text : texts) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      for (const char c : {'"', '\\', '{', '}', '[', ']', ',', ':', ' ', '\n', '0', 't', '\x01', '\xff'}) {
        std::string changed = text;
        changed[i] = c;
        parse(changed);
      }
      parse(std::string(text).erase(i, 1));
      parse(text.substr(0, i) + "}");
    }
  }
}

TEST(MessageTest, ReadsStringsOfEveryLengthLikeStepwiseParser) {
  for (std::size_t size = 0; size < 300; size += size < 40 ? 1 : 13) {
    const std::string filler(size, 'x');
    for (const std::string_view last : {"", "\\n", "\xc3\xa9", "\xc3", "\n", "\""}) {
      const std::string content = filler + std::string(last);
      parse(R"({"jsonrpc":"2.0","id":1,"method":")" + content + "\"}");
      parse(R"({"jsonrpc":"2.0","id":1,"result":{")" + content + R"(":[{"a":")" + content + "\"}]}}");
    }
  }
}

TEST(MessageTest, RejectsInvalidUtf8) {
  for (const std::string_view bad : {"\xff", "\xc3", "\xed\xa0\x80", "\xc0\xaf", "\xf4\x90\x80\x80"}) {
    const std::string b(bad);
    EXPECT_TRUE(is_parse_error(with_version("\"id\":1,\"method\":\"" + b + "\"")));
    EXPECT_TRUE(is_parse_error(with_version("\"id\":\"" + b + "\",\"method\":\"m\"")));
    EXPECT_TRUE(is_parse_error(with_version("\"id\":1,\"method\":\"m\",\"params\":[\"" + b + "\"]")));
    EXPECT_TRUE(is_parse_error(with_version("\"id\":1,\"method\":\"m\",\"" + b + "\":1")));
    EXPECT_TRUE(is_parse_error(with_version("\"id\":1,\"method\":\"m\"") + b));
  }
}

TEST(MessageTest, RejectsNulBytes) {
  EXPECT_TRUE(is_parse_error("\0"s));
  EXPECT_TRUE(is_parse_error(with_version("\"id\":1,\"method\":\"a\0b\""s)));
  EXPECT_TRUE(is_parse_error("\0{}"s));
}

TEST(MessageTest, KeepsLoneSurrogates) {
  const Message message = parse(with_version(R"("id":"\udc00","method":"m","params":["\ud800"])"));
  EXPECT_EQ(message.kind(), Kind::request);
  EXPECT_EQ(message.id(), R"("\udc00")");
  EXPECT_EQ(message.params_text(), R"(["\ud800"])");
}

TEST(MessageTest, RejectsNestingOverLimit) {
  Limits limits;
  limits.max_depth = 10;
  const auto nested = [](std::size_t depth) {
    return with_version("\"id\":1,\"method\":\"m\",\"params\":" + std::string(depth, '[') +
                        std::string(depth, ']'));
  };
  EXPECT_EQ(parse(nested(9), limits).kind(), Kind::request);
  EXPECT_TRUE(is_parse_error(nested(10), limits));
  EXPECT_EQ(parse(nested(511)).kind(), Kind::request);
  EXPECT_TRUE(is_parse_error(nested(600)));
  EXPECT_TRUE(is_parse_error(nested(100'000)));
  EXPECT_TRUE(is_parse_error(std::string(100'000, '[')));
  EXPECT_TRUE(is_parse_error(std::string(100'000, '[') + std::string(100'000, ']')));
}

TEST(MessageTest, ParseErrorContainsOffset) {
  EXPECT_NE(problem_with(R"({"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz])").find(" at byte "),
            std::string::npos);
}

TEST(MessageTest, KeepsBytesOfMalformedFrame) {  // for the log (R2.6)
  EXPECT_EQ(parse("Listening on port 80").frame().view(), "Listening on port 80");
  EXPECT_EQ(parse("").kind(), Kind::malformed);
}

TEST(MessageTest, MalformedCarriesDecoderError) {
  const Message message = Message::malformed(Error(ErrorKind::frame_too_large, "too large"));
  EXPECT_EQ(message.kind(), Kind::malformed);
  EXPECT_EQ(message.problem().message(), "too large");
  EXPECT_EQ(message.problem().detail().rpc_code, kInvalidRequest);
  EXPECT_EQ(message.id(), "");
  EXPECT_EQ(message.method(), "");
}

TEST(MessageTest, TooLargeMessageKeepsIdAndMethod) {
  const auto read = [](const std::string& frame) {
    const Message message = Message::too_large(Error(ErrorKind::frame_too_large, "too large"), frame);
    EXPECT_EQ(message.kind(), Kind::malformed);
    EXPECT_LE(message.frame().size(), 400U);
    return std::string(message.id()) + " " + std::string(message.method());
  };
  const std::string text = "\"" + std::string(1000, 'x') + "\"";
  EXPECT_EQ(read(R"({"jsonrpc":"2.0","id":7,"result":)" + text + "}"), "7 ");
  EXPECT_EQ(read(R"({"result":)" + text + R"(,"jsonrpc":"2.0","id":7})"), "7 ");
  EXPECT_EQ(read(R"({"error":{"data":)" + text + R"(},"id":7,"jsonrpc":"2.0"} )"), "7 ");
  EXPECT_EQ(read(R"({"jsonrpc":"2.0","id":"a","method":"m","params":)" + text + "}"), "\"a\" m");
  EXPECT_EQ(read(R"({"method":"m","params":)" + text + R"(,"jsonrpc":"2.0","id":7})"), "7 m");
  // Ids of nested objects, and ids in objects that are not messages, must not be used.
  EXPECT_EQ(read(R"({"result":{"text":)" + text + R"(,"id":7}})"), " ");
  EXPECT_EQ(read(R"({"result":[)" + text + R"(,{"id":7}]})"), " ");
  EXPECT_EQ(read(R"({"result":)" + text + R"(,"x\"id":7})"), " ");
  EXPECT_EQ(read(R"({"id":7,"text":)" + text + "}"), " ");
  EXPECT_EQ(read(text), " ");
}

// ---- line breaks -----------------------------------------------------------------------------------------

TEST(MessageTest, DetectsLineBreaksBetweenTokens) {  // R2.1
  EXPECT_FALSE(parse(with_version(R"("id":1,"method":"m","params":["\n\r"])")).has_line_break());
  EXPECT_FALSE(parse("{ \t\"jsonrpc\":\"2.0\",\"method\":\"m\"}").has_line_break());
  EXPECT_TRUE(parse("{\n\"jsonrpc\":\"2.0\",\"method\":\"m\"}").has_line_break());
  EXPECT_TRUE(parse("{\"jsonrpc\":\"2.0\",\r\"method\":\"m\"}").has_line_break());
  EXPECT_TRUE(parse(with_version("\"method\":\"m\",\"params\":[\n]")).has_line_break());
  EXPECT_TRUE(parse(with_version("\"method\":\"m\"") + "\n").has_line_break());
}

TEST(MessageTest, SlicesAreOneLineOnlyIfMessageHasNoLineBreak) {
  EXPECT_TRUE(parse(with_version(R"("id":1,"method":"m","params":[1])")).params().is_one_line());
  EXPECT_FALSE(parse(with_version("\"id\":1,\"method\":\"m\",\"params\":[\n1]")).params().is_one_line());
}

TEST(MessageTest, DetectsLineBreaksInMessagesOfBatch) {  // R2.1
  const Message batch = parse(
      "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"},\n{\"jsonrpc\":\"2.0\",\"id\":2,\n\"method\":\"b\","
      "\"params\":[\n1]}]");
  ASSERT_EQ(batch.kind(), Kind::batch);
  EXPECT_FALSE(batch.batch()[0].has_line_break());
  EXPECT_TRUE(batch.batch()[1].has_line_break());
  EXPECT_FALSE(batch.batch()[1].params().is_one_line());
}

TEST(MessageTest, DistinguishesMissingResultFromNullResult) {
  const auto parse = [](std::string_view text) { return Message::parse(Bytes::copy_of(text)); };
  EXPECT_TRUE(parse(R"({"jsonrpc":"2.0","id":4})").lacks_result());
  EXPECT_TRUE(parse(R"({"jsonrpc":"2.0","id":4,"params":[1]})").lacks_result());
  EXPECT_FALSE(parse(R"({"jsonrpc":"2.0","id":4,"result":null})").lacks_result());
  EXPECT_FALSE(parse(R"({"jsonrpc":"2.0","id":4,"method":"m"})").lacks_result());
}

TEST(MessageTest, ValueIsAbsentIfFrameIsNotJson) {
  const auto value = [](std::string_view text) {
    return std::string(Message::parse(Bytes::copy_of(text)).value().text());
  };
  EXPECT_EQ(value("\"ping\""), "\"ping\"");
  EXPECT_EQ(value("[]"), "[]");
  EXPECT_EQ(value("7"), "7");
  EXPECT_EQ(value(R"({"jsonrpc":"2.0","method":"m"})"), R"({"jsonrpc":"2.0","method":"m"})");
  EXPECT_EQ(Message::parse(Bytes::copy_of("[7]")).batch().front().value().text(), "7");
  EXPECT_EQ(value("ping"), "");
  EXPECT_EQ(value("{\"a\":"), "");
}

std::string members_of(const Message& message, std::string_view object) {
  std::string all;
  message.members().each(object, [&](std::string_view key, bool escaped, std::string_view value) {
    all += std::string(key) + (escaped ? "!" : "=") + std::string(value) + ";";
    return true;
  });
  return all;
}

TEST(MessageTest, IndexesMembersOfParamsAndResult) {
  const Message request =
      parse(with_version(R"("id":1,"params": {"a" : [1, {"b":2}] ,"\u0062":"x","c":null},"method":"m")"));
  EXPECT_EQ(request.members().member_count(), 3u);
  EXPECT_EQ(members_of(request, request.params_text()), R"(a=[1, {"b":2}];\u0062!"x";c=null;)");
  const Message response = parse(with_version(R"("id":1,"result":{"content":[]})"));
  EXPECT_EQ(members_of(response, response.result_text()), "content=[];");
}

TEST(MessageTest, IndexesMembersOfEachMessageOfBatch) {
  const Message batch = parse(
      R"([{"jsonrpc":"2.0","method":"m","params":{"a":1}}, {"jsonrpc":"2.0","method":"m","params":[1]},)"
      R"({"jsonrpc":"2.0","method":"m","params":{"b":2,"c":3}}])");
  ASSERT_EQ(batch.kind(), Kind::batch);
  EXPECT_EQ(members_of(batch.batch()[0], batch.batch()[0].params_text()), "a=1;");
  EXPECT_EQ(batch.batch()[1].members().member_count(), 0u);
  EXPECT_EQ(members_of(batch.batch()[2], batch.batch()[2].params_text()), "b=2;c=3;");
}

TEST(MessageTest, VisitsUnindexedMembersInOrder) {
  std::string params;
  std::string expected;
  for (int i = 0; i < 30; ++i) {
    params += (i > 0 ? ",\"k" : "\"k") + std::to_string(i) + "\":" + std::to_string(i);
    expected += "k" + std::to_string(i) + "=" + std::to_string(i) + ";";
  }
  const Message request = parse(with_version("\"id\":1,\"method\":\"m\",\"params\":{" + params + "}"));
  EXPECT_EQ(request.members().member_count(), 30u);
  EXPECT_EQ(members_of(request, request.params_text()), expected);
}

TEST(MessageTest, DetectsErrorsInsideMembersOfParams) {
  EXPECT_EQ(problem_with(with_version(R"("id":1,"method":"m","params":{"a":1,})")).substr(0, 6), "parse ");
  EXPECT_EQ(problem_with(with_version(R"("id":1,"method":"m","params":{"a":tru})")).substr(0, 6), "parse ");
  EXPECT_EQ(problem_with(R"({"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1)").substr(0, 6), "parse ");
}

}  // namespace
}  // namespace fairlead::rpc
