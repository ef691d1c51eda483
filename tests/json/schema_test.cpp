// Tests of Schema: results, messages, rejected schemas, and the cost of hostile schemas and values.
#include "fairlead/json/schema.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "fairlead/json/scanner.hpp"
#include "schema_cases.hpp"

namespace fairlead::json {
namespace {

Schema compiled(std::string_view schema, SchemaOptions options = {}) {
  auto result = Schema::compile(schema, options);
  EXPECT_TRUE(result) << schema << "\n" << (result ? "" : result.error().message());
  return result ? *result : Schema();
}

// Returns the error message of compile(), or "none".
std::string compile_error(std::string_view schema, SchemaOptions options = {}) {
  const auto result = Schema::compile(schema, options);
  if (result) return "none";
  EXPECT_EQ(result.error().kind(), ErrorKind::validation);
  return result.error().message();
}

// Returns the message of the first violation, or "valid".
std::string verdict(std::string_view schema, std::string_view value, SchemaOptions options = {}) {
  const auto violation = compiled(schema, options).validate(value);
  return violation ? violation->message : "valid";
}

std::vector<std::string_view> lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    lines.push_back(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(lines.back().size() + 1, text.size()));
  }
  return lines;
}

void check(const cases::SchemaCase& c, SchemaDialect dialect) {
  const Schema schema = compiled(c.schema, {.dialect = dialect});
  for (const std::string_view value : lines(c.valid)) {
    const auto violation = schema.validate(value);
    EXPECT_FALSE(violation) << c.schema << "\n" << value << "\n" << violation->message;
  }
  for (const std::string_view value : lines(c.invalid)) {
    EXPECT_TRUE(schema.validate(value)) << c.schema << "\n" << value;
    EXPECT_FALSE(schema.violations(value, 10).empty()) << c.schema << "\n" << value;
  }
}

TEST(SchemaTest, ValidatesKeywordsOfBothDialects) {
  for (const auto& c : cases::kBothDialects) {
    check(c, SchemaDialect::draft2020_12);
    check(c, SchemaDialect::draft7);
  }
}

TEST(SchemaTest, ValidatesKeywordsOf202012) {
  for (const auto& c : cases::k2020) check(c, SchemaDialect::draft2020_12);
}

TEST(SchemaTest, ValidatesKeywordsOfDraft7) {
  for (const auto& c : cases::kDraft7) check(c, SchemaDialect::draft7);
}

struct MessageCase {
  std::string_view schema;
  std::string_view value;
  std::string_view message;
};

TEST(SchemaTest, ViolationMessageDescribesProblem) {
  const std::string_view echo =
      R"({"type":"object","properties":{"message":{"type":"string"},"n":{"type":"integer"}},"required":["message"],
          "additionalProperties":false})";
  const std::vector<MessageCase> cases = {
      {echo, R"({"message":5})", "/message: expected string, got number"},
      {echo, "{}", R"(missing required property "message")"},
      {echo, "[]", "expected object, got array"},
      {echo, R"({"message":"","n":1.5})", "/n: expected integer, got 1.5"},
      {echo, R"({"message":"","extra":1})",
       R"(/extra: this property is not allowed, only "message" and "n")"},
      {R"({"properties":{"a/b~c":{"items":{"type":"null"}}}})", R"({"a/b~c":[null,1]})",
       "/a~1b~0c/1: expected null, got number"},
      {R"({"type":["string","null","integer"]})", "true", "expected string, null or integer, got boolean"},
      {"false", "1", "no value is allowed here"},
      {R"({"properties":{"a":false}})", R"({"a":1})", "/a: no value is allowed here"},
      {R"({"enum":["red","green",3]})", R"("blue")", R"(must be one of "red", "green" or 3)"},
      {R"({"enum":[1,2,3,4,5,6,7,8,9,10,11,12,13,14]})", "0",
       "must be one of 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 2 more"},
      {R"({"const":{"a":1}})", "1", R"(must be {"a":1})"},
      {R"({"minimum":5})", "3", "3 is less than the minimum 5"},
      {R"({"maximum":5.5})", "6e1", "6e1 is greater than the maximum 5.5"},
      {R"({"exclusiveMinimum":5})", "5.0", "5.0 is not greater than 5"},
      {R"({"exclusiveMaximum":5})", "5", "5 is not less than 5"},
      {R"({"multipleOf":0.1})", "0.25", "0.25 is not a multiple of 0.1"},
      {R"({"minLength":3})", R"("\u00e9")", "too short: 1 characters, at least 3"},
      {R"({"maxLength":3})", R"("abcd")", "too long: 4 characters, at most 3"},
      {R"({"pattern":"^\\d+$"})", R"("x")", R"(does not match the pattern "^\\d+$")"},
      {R"({"minItems":2})", "[1]", "too few items: 1, at least 2"},
      {R"({"maxItems":2})", "[1,2,3]", "too many items: 3, at most 2"},
      {R"({"uniqueItems":true})", "[1,2,1.0]", "items 0 and 2 are equal"},
      {R"({"contains":{"type":"string"}})", "[1]", "too few items that match contains: 0, at least 1"},
      {R"({"contains":true,"maxContains":1})", "[1,2]", "too many items that match contains: 2, at most 1"},
      {R"({"prefixItems":[true],"unevaluatedItems":false})", "[1,2]", "/1: this item is not allowed"},
      {R"({"unevaluatedProperties":false})", R"({"a":1})", "/a: this property is not allowed"},
      {R"({"minProperties":1})", "{}", "too few properties: 0, at least 1"},
      {R"({"maxProperties":1})", R"({"a":1,"b":2})", "too many properties: 2, at most 1"},
      {R"({"propertyNames":{"maxLength":2}})", R"({"abc":1})",
       "/abc: property name: too long: 3 characters, at most 2"},
      {R"({"dependentRequired":{"a":["b"]}})", R"({"a":1})", R"(property "a" requires property "b")"},
      {R"({"not":{"type":"string"}})", R"("")", "must not match the schema of not"},
      {R"({"anyOf":[{"type":"string"},{"type":"null"}]})", "1", "expected string or null, got number"},
      {R"({"anyOf":[{"minimum":5},{"type":"null"}]})", "1", "matches none of the 2 alternatives of anyOf"},
      {R"({"oneOf":[{"minimum":1},{"minimum":2},{"minimum":3}]})", "4",
       "matches alternatives 0 and 1 of oneOf, but only one may match"},
      {R"({"anyOf":[{"properties":{"kind":{"const":"a"},"x":{"type":"string"}}},
                    {"properties":{"kind":{"const":"b"},"y":{"type":"string"}}}]})",
       R"({"kind":"b","y":1})",
       "matches none of the 2 alternatives of anyOf; the nearest fails at /y: expected string, got number"},
      {R"({"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}})", "1", "expected string, got number"},
  };
  for (const auto& [schema, value, message] : cases) EXPECT_EQ(verdict(schema, value), message) << schema;
}

TEST(SchemaTest, ViolationPointsToValueAndKeyword) {
  const Schema schema = compiled(
      R"({"properties":{"list":{"items":{"$ref":"#/$defs/entry"}}},"$defs":{"entry":{"required":["id"],"minProperties":1}}})");
  const auto violation = schema.validate(R"({"list":[{"id":1},{"di":1}]})");
  ASSERT_TRUE(violation);
  EXPECT_EQ(violation->instance_pointer, "/list/1");
  EXPECT_EQ(violation->schema_pointer, "/$defs/entry/required");
  EXPECT_EQ(violation->keyword, "required");
  EXPECT_FALSE(violation->limit_reached);

  const auto meta =
      compiled(R"({"$ref":"http://json-schema.org/draft-07/schema#"})").validate(R"({"minLength":-1})");
  ASSERT_TRUE(meta);
  EXPECT_EQ(meta->schema_pointer,
            "http://json-schema.org/draft-07/schema#/definitions/nonNegativeInteger/minimum");
}

TEST(SchemaTest, TruncatesLongValuesInMessages) {
  const std::string key(500, 'k');
  const std::string said =
      verdict(R"({"properties":{"a":true},"required":[")" + key + R"("],"const":")" + key + R"("})", "{}");
  EXPECT_EQ(said, "must be \"" + std::string(79, 'k') + "…");
  // Never splits a code point.
  std::string accents;
  for (int i = 0; i < 100; ++i) accents += "\xc3\xa9";
  EXPECT_FALSE(
      validate("\"" + verdict(R"({"required":[")" + accents + R"("]})", "{}").substr(27)).has_value());
}

TEST(SchemaTest, ReturnsSeveralViolations) {
  const Schema schema = compiled(
      R"({"properties":{"a":{"type":"string"},"b":{"minimum":5,"multipleOf":2},"c":{"minLength":3,"pattern":"^x"}},
          "required":["d","e"],"allOf":[{"maxProperties":2}]})");
  const std::string_view value = R"({"a":1,"b":3,"c":"y"})";
  const auto all = schema.violations(value, 100);
  std::vector<std::string> messages;
  for (const auto& violation : all) messages.push_back(violation.message);
  EXPECT_EQ(messages, (std::vector<std::string>{
                          "/a: expected string, got number", "/b: 3 is less than the minimum 5",
                          "/b: 3 is not a multiple of 2", "/c: too short: 1 characters, at least 3",
                          R"(/c: does not match the pattern "^x")", R"(missing required property "d")",
                          R"(missing required property "e")", "too many properties: 3, at most 2"}));
  EXPECT_EQ(schema.violations(value, 3).size(), 3u);
  EXPECT_TRUE(schema.violations(value, 0).empty());
  EXPECT_EQ(schema.validate(value)->message, messages.front());
}

TEST(SchemaTest, ValidatesEveryValueOfRepeatedKey) {
  const std::string_view schema = R"({"properties":{"a":{"type":"string"}}})";
  EXPECT_EQ(verdict(schema, R"({"a":1,"a":""})"), "/a: expected string, got number");
  EXPECT_EQ(verdict(schema, R"({"a":"","a":1})"), "/a: expected string, got number");
}

TEST(SchemaTest, AssertsFormatsOnlyWhenEnabled) {
  struct Case {
    std::string_view format, valid, invalid;
  };
  const std::vector<Case> cases = {
      {"date-time", "2024-02-29T23:59:60Z\n2024-01-01t00:00:00.5+01:30", "2023-02-29T00:00:00Z\n2024-01-01"},
      {"date", "2024-12-31", "2024-13-01\n2024-1-01\n2024-04-31"},
      {"time", "12:30:00Z", "12:30:00\n24:00:00Z\n12:30:60Z"},
      {"email", "a.b+c@example.org", "a@\n@b\na b@c.d\n.a@b.c"},
      {"uri", "https://x.example/a?b#c\nurn:x:y", "/a\na b:c\nhttp://x/%zz"},
      {"uuid", "123E4567-e89b-12d3-a456-426614174000", "123e4567e89b12d3a456426614174000"},
      {"ipv4", "127.0.0.1", "127.0.0\n256.0.0.1\n1.2.3.04"},
      {"ipv6", "::1\nfe80::1:2", "::1%eth0\n12345::"},
      {"made-up", "anything", ""},
  };
  for (const auto& [format, valid, invalid] : cases) {
    const std::string schema = R"({"format":")" + std::string(format) + R"("})";
    for (const std::string_view text : lines(valid))
      EXPECT_EQ(verdict(schema, "\"" + std::string(text) + "\"", {.assert_formats = true}), "valid") << text;
    for (const std::string_view text : lines(invalid)) {
      const std::string value = "\"" + std::string(text) + "\"";
      EXPECT_EQ(verdict(schema, value, {.assert_formats = true}), "is not a valid " + std::string(format))
          << text;
      EXPECT_EQ(verdict(schema, value), "valid") << text;
    }
  }
}

TEST(SchemaTest, CompileRejectsInvalidSchemas) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases = {
      {"{", "the schema is not JSON: text ends too early at byte 1"},
      {"[]", "expected a schema (object or boolean), got array"},
      {R"({"properties":{"a":5}})", "/properties/a: expected a schema (object or boolean), got number"},
      {R"({"properties":[]})", "/properties: expected object, got array"},
      {R"({"allOf":{}})", "/allOf: expected array, got object"},
      {R"({"anyOf":[]})", "/anyOf: expected at least one schema"},
      {R"({"items":[{}]})", "/items: an array of schemas is called prefixItems in 2020-12"},
      {R"({"type":"strin"})", R"(/type: unknown type "strin")"},
      {R"({"type":["string",5]})", "/type/1: expected string, got number"},
      {R"({"type":5})", "/type: expected the name of a type, or an array of such names"},
      {R"({"properties":{"a":{"minimum":"5"}}})", "/properties/a/minimum: expected number, got string"},
      {R"({"exclusiveMinimum":true})", "/exclusiveMinimum: expected number, got boolean"},
      {R"({"minLength":-1})", "/minLength: expected a whole number that is not negative"},
      {R"({"minLength":1.5})", "/minLength: expected a whole number that is not negative"},
      {R"({"multipleOf":0})", "/multipleOf: expected a number greater than 0"},
      {R"({"multipleOf":1.2345678901234567891})",
       "/multipleOf: more than 18 significant digits are not supported"},
      {R"({"required":"a"})", "/required: expected array, got string"},
      {R"({"required":[1]})", "/required/0: expected string, got number"},
      {R"({"enum":1})", "/enum: expected array, got number"},
      {R"({"pattern":"("})", R"(/pattern: the pattern "(" cannot be used: a group is not closed at byte 1)"},
      {R"({"patternProperties":{"(a)\\1":true}})",
       R"(/patternProperties/(a)\1: the pattern "(a)\\1" cannot be used: backreferences are not supported at byte 3)"},
      {R"({"$ref":5})", "/$ref: expected string, got number"},
      {R"({"$ref":"#/$defs/a"})", R"(/$ref: refers to "#/$defs/a", but there is no value there)"},
      {R"({"$ref":"#a"})", R"(/$ref: refers to "#a", but there is no such anchor)"},
      {R"({"$id":"http://x.example/a#b"})", "/$id: $id must not have a fragment"},
      {R"({"$defs":{"a":{"$anchor":"x"},"b":{"$anchor":"x"}}})",
       R"(/$defs/b/$anchor: the anchor "x" is used twice)"},
      {R"({"$defs":{"a":{"$id":"x"},"b":{"$id":"x"}}})", R"(/$defs/b/$id: the $id "x" is used twice)"},
  };
  for (const auto& [schema, message] : cases) EXPECT_EQ(compile_error(schema), message) << schema;
}

TEST(SchemaTest, NeverFetchesReferences) {
  EXPECT_EQ(compile_error(R"({"properties":{"a":{"$ref":"https://x.example/s.json#/a"}}})"),
            "/properties/a/$ref: refers to \"https://x.example/s.json#/a\", which is not part of the schema; "
            "references are not fetched");
  EXPECT_NE(compile_error(R"({"$id":"http://x.example/a/b","$ref":"../c"})").find("\"http://x.example/c\""),
            std::string::npos);
  EXPECT_NE(compile_error(R"({"$ref":"file:///etc/passwd"})").find("not fetched"), std::string::npos);
  EXPECT_NE(compile_error(R"({"$defs":{"unused":{"$dynamicRef":"other.json"}}})").find("not fetched"),
            std::string::npos);
}

TEST(SchemaTest, SelectsDialectBySchemaKeyword) {
  for (const std::string_view uri :
       {"http://json-schema.org/draft-07/schema#", "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft-07/schema#"}) {
    const std::string schema = R"({"$schema":")" + std::string(uri) + R"(","items":[{"type":"string"}]})";
    EXPECT_EQ(verdict(schema, "[1]"), "/0: expected string, got number");
  }
  for (const std::string_view uri :
       {"http://json-schema.org/draft-04/schema#", "https://json-schema.org/draft/2019-09/schema",
        "http://x.example/mine"}) {
    EXPECT_EQ(compile_error(R"({"$schema":")" + std::string(uri) + R"("})"),
              "/$schema: unsupported dialect \"" + std::string(uri) +
                  "\"; supported are https://json-schema.org/draft/2020-12/schema and "
                  "http://json-schema.org/draft-07/schema#");
  }
}

TEST(SchemaTest, CompileRejectsReferenceCycles) {
  const std::string endless =
      "refers back to itself without going deeper into the value, so validation would never end";
  EXPECT_EQ(compile_error(R"({"$ref":"#"})"), endless);
  EXPECT_EQ(compile_error(R"({"allOf":[{"$ref":"#"}]})"), endless);
  EXPECT_EQ(compile_error(R"({"not":{"anyOf":[{"if":true,"then":{"$ref":"#"}}]}})"), endless);
  EXPECT_EQ(compile_error(R"({"dependentSchemas":{"a":{"$ref":"#"}}})"), endless);
  EXPECT_EQ(
      compile_error(
          R"({"items":{"$ref":"#/$defs/a"},"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}})"),
      "/$defs/a: " + endless);
  EXPECT_EQ(compile_error(R"({"items":{"$ref":"#"},"additionalProperties":{"$ref":"#"}})"), "none");
  // This cycle is known only at run time.
  const auto violation = compiled(R"({"$dynamicAnchor":"a","allOf":[{"$dynamicRef":"#a"}]})").validate("1");
  ASSERT_TRUE(violation);
  EXPECT_TRUE(violation->limit_reached);
  EXPECT_EQ(violation->message, "nested deeper than max_validation_depth (1024)");
}

TEST(SchemaTest, CompileEnforcesLimits) {
  EXPECT_EQ(compile_error("{\"a\":1}", {.max_schema_bytes = 5}),
            "the schema is longer than max_schema_bytes (5)");
  EXPECT_EQ(compile_error(R"({"not":{"not":{"not":{}}}})", {.max_schema_depth = 3}),
            "the schema is nested deeper than max_schema_depth (3)");
  EXPECT_EQ(compile_error(R"({"not":{"not":{"not":{}}}})", {.max_subschemas = 3}),
            "/not/not/not: more subschemas than max_subschemas (3)");
  EXPECT_EQ(compile_error(R"({"pattern":"a{50}","items":{"pattern":"b{50}"}})", {.max_pattern_states = 150}),
            "/items/pattern: the pattern \"b{50}\" cannot be used: the pattern needs more states than "
            "max_pattern_states leaves");
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += R"({"not":)";
  EXPECT_NE(compile_error(deep + "{}" + std::string(100'000, '}')).find("max_schema_depth"),
            std::string::npos);
}

std::string nested(std::string_view open, std::string_view inside, std::string_view close,
                   std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += open;
  text += inside;
  for (std::size_t i = 0; i < times; ++i) text += close;
  return text;
}

TEST(SchemaTest, ValidationStopsAtMaxDepth) {
  const Schema tree = compiled(R"({"anyOf":[{"type":"integer"},{"items":{"$ref":"#"},"uniqueItems":true}]})");
  EXPECT_FALSE(tree.validate(nested("[", "1", "]", 300)));
  const auto deep = tree.validate(nested("[", "1", "]", 1000));
  ASSERT_TRUE(deep);
  EXPECT_TRUE(deep->limit_reached);
  EXPECT_EQ(deep->message, "nested deeper than max_validation_depth (1024)");
  EXPECT_TRUE(compiled("true").validate(nested("[", "1", "]", 100'000))->limit_reached);
  const Schema most = compiled(R"({"items":{"$ref":"#"}})", {.max_validation_depth = 1'000'000});
  EXPECT_FALSE(most.validate(nested("[", "1", "]", 2'000)));
  EXPECT_TRUE(most.validate(nested("[", "1", "]", 1'000'000))->limit_reached);
  const Schema endless = compiled(R"({"$dynamicAnchor":"a","anyOf":[{"oneOf":[{"$dynamicRef":"#a"}]}]})",
                                  {.max_validation_depth = 1'000'000});
  EXPECT_EQ(endless.validate("1")->message, "nested deeper than max_validation_depth (4096)");
}

// Without the limit, each of these would take almost for ever.
TEST(SchemaTest, ValidationStopsAtMaxSteps) {
  std::string doubling = R"({"$id":"doubling","$ref":"#/$defs/x0","$defs":{)";
  for (int i = 0; i < 60; ++i) {
    const std::string next = "{\"$ref\":\"#/$defs/x" + std::to_string(i + 1) + "\"}";
    doubling += "\"x" + std::to_string(i) + "\":{\"allOf\":[" + next + "," + next + "]},";
  }
  doubling += R"("x60":{"minimum":0}}})";
  const std::string too_much = "validating takes more than max_validation_steps (1000000)";
  EXPECT_EQ(verdict(doubling, "1"), too_much);
  EXPECT_EQ(verdict(R"({"not":)" + doubling + "}", "1"),
            too_much);  // `not` of an unknown result is unknown, not valid
  EXPECT_EQ(verdict(R"({"if":)" + doubling + R"(,"else":true})", "1"), too_much);
  EXPECT_EQ(verdict(R"({"anyOf":[)" + doubling + R"(,{"minimum":0}]})", "1"), too_much);

  std::string long_string = "\"" + std::string(1'000'000, 'a') + "\"";
  std::string lengths = R"({"allOf":[)";
  for (int i = 0; i < 5000; ++i) lengths += R"({"minLength":1,"pattern":"(?=)(a+)+$"},)";
  EXPECT_EQ(verdict(lengths + "true]}", long_string), too_much);

  std::string numbers = "[0";
  for (int i = 1; i < 200'000; ++i) numbers += "," + std::to_string(i);
  numbers += "]";
  EXPECT_EQ(verdict(R"({"uniqueItems":true})", numbers), "valid");
  EXPECT_EQ(verdict(R"({"items":{"enum":)" + numbers.substr(0, 60'000) + "0]}}", numbers,
                    {.max_validation_steps = 3'000'000}),
            "validating takes more than max_validation_steps (3000000)");
  EXPECT_EQ(verdict("true", numbers, {.max_validation_steps = 1000}),
            "validating takes more than max_validation_steps (1000)");
}

TEST(SchemaTest, InvalidJsonIsHandledSafely) {
  const Schema schema =
      compiled(R"({"properties":{"a":{"type":"string","pattern":"a"}},"uniqueItems":true})");
  for (const std::string_view text : {"", " ", "{", "[", "{\"a\"", "{\"a\":", "{\"a\":\"", "{\"a\":\"\\",
                                      "[1,", "\"\\u12\"", "nul", "{,}", "]", "[}", "1 2"}) {
    const auto violation = schema.validate(text);
    ASSERT_TRUE(violation) << text;
    EXPECT_EQ(violation->message, "not valid JSON") << text;
    EXPECT_FALSE(violation->limit_reached);
  }
}

TEST(SchemaTest, DefaultSchemaAcceptsEverything) {
  EXPECT_FALSE(Schema().validate("1"));
  EXPECT_TRUE(Schema().violations("1", 5).empty());
}

TEST(SchemaTest, ValidatesOnManyThreads) {
  const Schema schema = compiled(
      R"({"type":"object","properties":{"id":{"type":"string","pattern":"^[a-z]{1,8}$"},"next":{"$ref":"#"}},
          "required":["id"],"unevaluatedProperties":false})");
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([copy = schema, &wrong] {
      for (int n = 0; n < 500; ++n) {
        if (copy.validate(R"({"id":"abc","next":{"id":"\u0064ef"}})")) ++wrong;
        if (!copy.validate(R"({"id":"abc","next":{"id":"DEF"}})")) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace fairlead::json
