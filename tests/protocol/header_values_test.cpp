// Header values: encoding, decoding, and the comparison with the request body.
#include "protocol/header_values.hpp"

#include <gtest/gtest.h>

#include <map>

namespace fairlead::mcp {
namespace {

TEST(HeaderValuesTest, UnsafeHeaderValuesAreEncoded) {
  for (const char* plain : {"a", "Hello, world", "a b", "=?base64?SGVsbG8=", "SGVsbG8=", "?=", "=?base64"}) {
    EXPECT_EQ(encode_header_value(plain), plain);
  }
  EXPECT_EQ(encode_header_value(""),
            "=?base64?"
            "?=");
  EXPECT_EQ(encode_header_value(" a"), "=?base64?IGE=?=");
  EXPECT_EQ(encode_header_value("a "), "=?base64?YSA=?=");
  EXPECT_EQ(encode_header_value("a\tb"), "=?base64?YQli?=");
  EXPECT_EQ(encode_header_value("a\r\nX: y"), "=?base64?YQ0KWDogeQ==?=");
  EXPECT_EQ(encode_header_value("日本"), "=?base64?5pel5pys?=");
  EXPECT_EQ(encode_header_value("=?base64?SGVsbG8=?="), "=?base64?PT9iYXNlNjQ/U0dWc2JHOD0/PQ==?=");
  EXPECT_EQ(encode_header_value("=?base64?="), "=?base64?PT9iYXNlNjQ/PQ==?=");
}

TEST(HeaderValuesTest, OnlyCanonicalEncodingsAreDecoded) {
  EXPECT_EQ(decode_header_value("=?base64?SGVsbG8=?="), "Hello");
  EXPECT_EQ(decode_header_value("=?base64?"
                                "?="),
            "");
  EXPECT_EQ(decode_header_value("a\tb"), "a\tb");
  // A prefix or suffix alone, or in another spelling, is plain text.
  for (const char* literal :
       {"SGVsbG8=", "=?base64?SGVsbG8=", "SGVsbG8=?=", "=?BASE64?SGVsbG8=?=", "", "=?base64?="}) {
    EXPECT_EQ(decode_header_value(literal), literal);
  }
  for (const char* bad :
       {"=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?=", "=?base64?SGVsbG9=?=", "=?base64?SGVs bG8=?=",
        "=?base64?/w==?=", "=?base64?7aCA?=", "caf\xc3\xa9", "a\x7f", "a\nb"}) {
    EXPECT_EQ(decode_header_value(bad), std::nullopt) << bad;
  }
}

const char* const kSchema = R"({"type":"object","properties":{
  "region":{"type":"string","x-mcp-header":"Region"},
  "n":{"type":"integer","x-mcp-header":"N"},
  "deep":{"type":"object","properties":{"on":{"type":"boolean","x-mcp-header":"On"}}},
  "plain":{"type":"string"}}})";

std::vector<HeaderParam> params_of(json::View schema) {
  return read_header_annotations(schema).params;
}

std::string problem(const std::string& arguments, std::map<std::string, std::string> headers) {
  const auto lookup = [&](std::string_view name) -> std::optional<std::string_view> {
    const auto found = headers.find(std::string(name));
    if (found == headers.end()) return std::nullopt;
    return found->second;
  };
  return param_header_problem(params_of(json::View(kSchema)), json::View(arguments), lookup).value_or("");
}

TEST(HeaderValuesTest, SchemaDeterminesHeaderParams) {
  const std::vector<HeaderParam> params = params_of(json::View(kSchema));
  ASSERT_EQ(params.size(), 3u);
  EXPECT_EQ(params[0].header, "Mcp-Param-Region");
  EXPECT_EQ(params[2].path, (std::vector<std::string>{"deep", "on"}));
  EXPECT_EQ(params[2].type, HeaderParam::Type::boolean);
  EXPECT_TRUE(params_of(json::View(R"({"x-mcp-header":"A"})")).empty());
}

TEST(HeaderValuesTest, ArgumentsAreSentAsHeaders) {
  const auto headers =
      param_headers(params_of(json::View(kSchema)),
                    json::View(R"({"region":"süd","n":42.0,"deep":{"on":true},"plain":"x"})"));
  EXPECT_EQ(
      headers,
      (std::vector<std::pair<std::string, std::string>>{
          {"Mcp-Param-Region", "=?base64?c8O8ZA==?="}, {"Mcp-Param-N", "42"}, {"Mcp-Param-On", "true"}}));
  // Arguments that are null, beyond 2^53, or of the wrong type are not sent.
  EXPECT_TRUE(param_headers(params_of(json::View(kSchema)),
                            json::View(R"({"region":null,"n":9007199254740992,"deep":{"on":"yes"}})"))
                  .empty());
}

TEST(HeaderValuesTest, ArgumentIsFoundAmongOtherMembers) {
  const auto headers = [](const char* arguments) {
    std::string all;
    for (const auto& [name, value] : param_headers(params_of(json::View(kSchema)), json::View(arguments)))
      all += name + "=" + value + " ";
    return all;
  };
  EXPECT_EQ(headers(R"( { "a" : {"n":1,"x":"}\\\""} , "d\u0065ep" : { "b":[{}], "on" : true } , "n" : 2 } )"),
            "Mcp-Param-N=2 Mcp-Param-On=true ");
  // If a key is repeated, the last value is used.
  EXPECT_EQ(headers(R"({"n":1,"deep":{"on":true},"n":2,"deep":{"off":1}})"), "Mcp-Param-N=2 ");
  EXPECT_EQ(headers(R"({"deep":{"on":true},"deep":[]})"), "");
  EXPECT_EQ(headers(R"({"deep":{"deep":{"on":true}},"on":true})"), "");
  EXPECT_EQ(headers("{}"), "");
  EXPECT_EQ(headers("[]"), "");
}

TEST(HeaderValuesTest, MismatchedHeaderIsReported) {
  EXPECT_EQ(problem(R"({"region":"eu"})", {{"Mcp-Param-Region", "eu"}}), "");
  EXPECT_EQ(problem(R"({"region":"Hello"})", {{"Mcp-Param-Region", "=?base64?SGVsbG8=?="}}), "");
  EXPECT_EQ(problem(R"({"region":"eu"})", {}), "Mcp-Param-Region is missing, but the argument is present");
  EXPECT_EQ(problem(R"({"region":"eu"})", {{"Mcp-Param-Region", "EU"}}),
            "Mcp-Param-Region does not match the argument");
  EXPECT_NE(problem(R"({"region":"Hello"})", {{"Mcp-Param-Region", "=?base64?SGVsbG8?="}}), "");
  EXPECT_NE(problem(R"({"region":"Hello"})", {{"Mcp-Param-Region", "SGVsbG8="}}), "");
  EXPECT_NE(problem(R"({"region":"eu"})", {{"Mcp-Param-Region", "\n"}}), "");
  EXPECT_EQ(problem(R"({"region":null})", {{"Mcp-Param-Region", "eu"}}), "");
  EXPECT_EQ(problem(R"({"n":42})", {{"Mcp-Param-N", "42.0"}}), "");
  EXPECT_EQ(problem(R"({"n":4.2e1})", {{"Mcp-Param-N", "42"}}), "");
  EXPECT_NE(problem(R"({"n":42})", {{"Mcp-Param-N", "4.2e1"}}), "");
  EXPECT_NE(problem(R"({"n":42})", {{"Mcp-Param-N", "+42"}}), "");
  EXPECT_NE(problem(R"({"n":42})", {{"Mcp-Param-N", "42."}}), "");
  EXPECT_NE(problem(R"({"deep":{"on":true}})", {{"Mcp-Param-On", "True"}}), "");
  EXPECT_EQ(problem(R"({"n":"many"})", {{"Mcp-Param-N", "7"}}),
            "");  // rejected by schema validation, not here
  EXPECT_EQ(problem(R"({"n":9007199254740992})", {}), "");
  EXPECT_NE(problem(R"({"n":9007199254740992})", {{"Mcp-Param-N", "9007199254740993"}}), "");
}

}  // namespace
}  // namespace fairlead::mcp
