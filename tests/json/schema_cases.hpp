// A few cases for every keyword of both dialects, so that they are tested even where the official suite
// (schema_suite_test.cpp) is not installed.
#pragma once

#include <array>
#include <string_view>

#include "fairlead/json/schema.hpp"

namespace fairlead::json::cases {

struct SchemaCase {
  std::string_view schema;
  std::string_view valid;    // valid values, one per line
  std::string_view invalid;  // invalid values, one per line
};

// Cases with the same result in both dialects.
inline constexpr std::array kBothDialects = {
    SchemaCase{"true", "1\nnull\n{}", ""},
    SchemaCase{"false", "", "1\nnull\n{}"},
    SchemaCase{"{}", "1\nnull\n{}", ""},
    SchemaCase{R"({"type":"string"})", R"("")", "1\nnull\n[]\n{}\ntrue"},
    SchemaCase{R"({"type":"integer"})", "1\n-0\n1.0\n1e2\n123456789012345678901234567890",
               "1.5\n\"1\"\n1e-1"},
    SchemaCase{R"({"type":"number"})", "1\n1.5\n1e400", "\"1\"\nnull"},
    SchemaCase{R"({"type":["null","boolean"]})", "null\ntrue\nfalse", "0\n\"\""},
    SchemaCase{R"({"type":["integer","string"]})", "1\n2.0\n\"\"", "1.5"},
    SchemaCase{R"({"enum":[1,"a",null,[true],{"x":1,"y":2}]})",
               "1\n1.0\n10e-1\n\"a\"\n\"\\u0061\"\nnull\n[true]\n{\"y\":2.0,\"x\":1}",
               "2\n\"b\"\ntrue\n[1]\n{\"x\":1}\n[]"},
    SchemaCase{R"({"const":{"a":[1,2]}})", "{\"a\":[1,2]}\n{\"\\u0061\":[1.0,2]}", "{\"a\":[2,1]}\n1"},
    SchemaCase{R"({"const":false})", "false", "0\nnull\ntrue"},
    SchemaCase{R"({"const":9007199254740993})", "9007199254740993", "9007199254740992"},
    SchemaCase{R"({"enum":[]})", "", "1\n\"a\""},
    SchemaCase{R"({"multipleOf":2})", "4\n0\n-2\n1e400\n\"x\"", "7\n1.5"},
    SchemaCase{R"({"multipleOf":0.01})", "0.07\n19.99\n4.35\n1e300", "0.075\n1e-3"},
    SchemaCase{R"({"multipleOf":1e-8})", "12391239123", "0.000000015"},
    SchemaCase{R"({"minimum":1.1})", "1.1\n2.6\n11e-1\n\"x\"", "0.6\n-1e400"},
    SchemaCase{R"({"maximum":300})", "300.0\n3e2\n-1", "300.5\n1e400\n30000000000000000000000"},
    SchemaCase{R"({"exclusiveMinimum":9007199254740992})", "9007199254740993", "9007199254740992"},
    SchemaCase{R"({"exclusiveMaximum":-1.5})", "-1.51\n-2", "-1.5\n-15e-1\n0"},
    SchemaCase{R"({"minLength":2})", "\"ab\"\n\"\\u00e9\\u00e9\"\n1", "\"a\"\n\"\\ud83d\\ude00\""},
    SchemaCase{R"({"maxLength":2.0})", "\"ab\"\n\"\xf0\x9f\x98\x80\xf0\x9f\x98\x80\"", "\"abc\""},
    SchemaCase{R"({"pattern":"^a*$"})", "\"aaa\"\n\"\\u0061\"\n1", "\"abc\""},
    SchemaCase{R"({"format":"date"})", "\"nonsense\"", ""},
    SchemaCase{R"({"minItems":1,"maxItems":2})", "[1]\n[1,2]\n{}", "[]\n[1,2,3]"},
    SchemaCase{
        R"({"uniqueItems":true})", "[]\n[1,true]\n[{\"a\":1},{\"a\":2}]\n[[1],[2]]\n[1,\"1\"]\n[0,false]",
        "[1,2,1.0]\n[{\"a\":1,\"b\":2},{\"b\":2,\"a\":1.0}]\n[[1],[1]]\n[\"a\",\"\\u0061\"]\n[null,0,null]"},
    SchemaCase{R"({"items":{"type":"integer"}})", "[]\n[1,2]\n{\"0\":\"x\"}", "[1,\"x\"]"},
    SchemaCase{R"({"items":false})", "[]", "[1]"},
    SchemaCase{R"({"contains":{"minimum":5}})", "[3,5]\n{}", "[]\n[3,4]"},
    SchemaCase{R"({"properties":{"a":{"type":"integer"},"b":{"type":"string"}}})",
               "{}\n{\"a\":1}\n{\"b\":\"\",\"a\":1}\n{\"c\":[]}\n[]",
               "{\"a\":\"\"}\n{\"x\":1,\"\\u0061\":\"\"}"},
    SchemaCase{R"({"patternProperties":{"^x":{"type":"integer"},"y$":{"minimum":5}}})",
               "{\"x\":1}\n{\"xy\":6}\n{\"a\":\"\"}", "{\"x\":\"\"}\n{\"xy\":4}\n{\"ay\":4}"},
    SchemaCase{R"({"properties":{"a":{}},"patternProperties":{"^x":{}},"additionalProperties":false})",
               "{}\n{\"a\":1,\"xx\":2}", "{\"b\":1}\n{\"a\":1,\"y\":2}"},
    SchemaCase{R"({"additionalProperties":{"type":"boolean"}})", "{\"a\":true}", "{\"a\":1}"},
    SchemaCase{R"({"propertyNames":{"maxLength":3}})", "{\"abc\":1}\n[]", "{\"abcd\":1}"},
    SchemaCase{R"({"propertyNames":false})", "{}", "{\"a\":1}"},
    SchemaCase{R"({"required":["a","b\"c"]})", "{\"a\":1,\"b\\\"c\":2}\n[]", "{\"a\":1}\n{}"},
    SchemaCase{R"({"minProperties":2,"maxProperties":3})", "{\"a\":1,\"b\":2}\n1",
               "{\"a\":1}\n{\"a\":1,\"a\":2}\n{\"a\":1,\"b\":2,\"c\":3,\"d\":4}"},
    SchemaCase{R"({"allOf":[{"minimum":1},{"maximum":3}]})", "2", "0\n4"},
    SchemaCase{R"({"anyOf":[{"type":"string"},{"minimum":3}]})", "\"a\"\n3\nnull", "2"},
    SchemaCase{R"({"oneOf":[{"type":"integer"},{"minimum":2}]})", "1\n2.5\n\"x\"", "3\n1.5"},
    SchemaCase{R"({"not":{"type":"integer"}})", "1.5\n\"\"", "1\n2.0"},
    SchemaCase{R"({"if":{"minimum":10},"then":{"multipleOf":10},"else":{"maximum":5}})", "20\n3\n\"x\"",
               "15\n7"},
    SchemaCase{R"({"then":false,"else":false})", "1", ""},
    SchemaCase{R"({"properties":{"next":{"$ref":"#"}},"additionalProperties":false})",
               "{\"next\":{\"next\":{}}}", "{\"next\":{\"nxt\":{}}}"},
    SchemaCase{
        R"({"definitions":{"a/b~c":{"type":"string"}},"properties":{"x":{"$ref":"#/definitions/a~1b~0c"}}})",
        "{\"x\":\"\"}", "{\"x\":1}"},
    SchemaCase{R"({"definitions":{"a%b":{"type":"string"}},"items":{"$ref":"#/definitions/a%25b"}})",
               "[\"\"]", "[1]"},
    SchemaCase{R"({"anything":{"here":[{"type":"string"}]},"items":{"$ref":"#/anything/here/0"}})", "[\"\"]",
               "[1]"},
    SchemaCase{
        R"({"$id":"http://x.example/a","items":{"$ref":"b"},"definitions":{"b":{"$id":"b","type":"string"}}})",
        "[\"\"]", "[1]"},
    SchemaCase{R"({"properties":{"$ref":{"type":"string"}}})", "{\"$ref\":\"#/nowhere\"}", "{\"$ref\":1}"},
    SchemaCase{R"({"const":{"$ref":"#/nowhere","$id":"http://x.example/y"}})",
               "{\"$ref\":\"#/nowhere\",\"$id\":\"http://x.example/y\"}", "1"},
    SchemaCase{R"({"$comment":1,"unknown":{"type":5},"title":"t","default":"d","examples":[1]})", "1\n{}",
               ""},
    SchemaCase{R"({"ty\u0070e":"string"})", "\"\"", "1"},
};

inline constexpr std::array k2020 = {
    SchemaCase{R"({"prefixItems":[{"type":"integer"},{"type":"string"}],"items":{"type":"null"}})",
               "[1,\"a\",null]\n[1]\n[]", "[\"a\"]\n[1,\"a\",2]"},
    SchemaCase{R"({"contains":{"type":"string"},"minContains":2,"maxContains":3})", "[1,\"a\",\"b\"]",
               "[\"a\"]\n[\"a\",\"b\",\"c\",\"d\"]"},
    SchemaCase{R"({"contains":{"type":"string"},"minContains":0})", "[]\n[1]", ""},
    SchemaCase{R"({"dependentRequired":{"a":["b","c"]}})", "{}\n{\"b\":1}\n{\"a\":1,\"b\":1,\"c\":1}",
               "{\"a\":1,\"b\":1}"},
    SchemaCase{R"({"dependentSchemas":{"a":{"minProperties":2}}})", "{\"b\":1}\n{\"a\":1,\"b\":1}\n1",
               "{\"a\":1}"},
    SchemaCase{R"({"dependencies":{"a":["b"]},"additionalItems":false})", "{\"a\":1}\n[1]", ""},
    SchemaCase{R"({"$ref":"#/$defs/a","maximum":5,"$defs":{"a":{"minimum":3}}})", "4", "2\n6"},
    SchemaCase{R"({"$defs":{"a":{"$anchor":"here","type":"string"}},"items":{"$ref":"#here"}})", "[\"\"]",
               "[1]"},
    SchemaCase{R"({"properties":{"a":true},"unevaluatedProperties":false})", "{\"a\":1}", "{\"b\":1}"},
    SchemaCase{
        R"({"allOf":[{"properties":{"a":true}},{"patternProperties":{"^x":true}}],"unevaluatedProperties":false})",
        "{\"a\":1,\"xx\":2}", "{\"a\":1,\"y\":2}"},
    SchemaCase{
        R"({"anyOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"b":true}}],"unevaluatedProperties":false})",
        "{\"a\":\"\",\"b\":1}\n{\"b\":1}", "{\"a\":1}\n{\"a\":1,\"b\":1}"},
    SchemaCase{
        R"({"if":{"properties":{"k":{"const":1}},"required":["k"]},"then":{"properties":{"a":true}},"unevaluatedProperties":false})",
        "{\"k\":1,\"a\":2}\n{}", "{\"k\":2}\n{\"k\":1,\"b\":1}"},
    SchemaCase{R"({"not":{"properties":{"a":false}},"unevaluatedProperties":false})", "", "{\"a\":1}\n{}"},
    SchemaCase{
        R"({"$ref":"#/$defs/base","unevaluatedProperties":{"type":"integer"},"$defs":{"base":{"properties":{"a":true}}}})",
        "{\"a\":\"x\",\"n\":1}", "{\"n\":\"x\"}"},
    SchemaCase{R"({"allOf":[{"unevaluatedProperties":true}],"unevaluatedProperties":false})", "{\"a\":1}",
               ""},
    SchemaCase{
        R"({"dependentSchemas":{"a":{"properties":{"b":true}}},"properties":{"a":true},"unevaluatedProperties":false})",
        "{\"a\":1,\"b\":2}", "{\"b\":2}"},
    SchemaCase{R"({"prefixItems":[true],"unevaluatedItems":false})", "[1]", "[1,2]"},
    SchemaCase{R"({"contains":{"type":"string"},"unevaluatedItems":{"type":"integer"}})", "[1,\"a\",2]",
               "[\"a\",null]\n[1]"},
    SchemaCase{
        R"({"oneOf":[{"prefixItems":[{"const":1}]},{"prefixItems":[{"const":2},true]}],"unevaluatedItems":false})",
        "[1]\n[2,3]", "[1,2]\n[3]"},
    SchemaCase{
        R"({"$id":"http://x.example/strict","$dynamicAnchor":"node","$ref":"tree","unevaluatedProperties":false,
      "$defs":{"tree":{"$id":"tree","$dynamicAnchor":"node","type":"object",
                       "properties":{"kids":{"type":"array","items":{"$dynamicRef":"#node"}}}}}})",
        "{\"kids\":[{\"kids\":[]}]}", "{\"kidz\":[]}\n{\"kids\":[{\"kidz\":[]}]}\n{\"kids\":[1]}"},
    SchemaCase{R"({"$dynamicRef":"#a","$defs":{"x":{"$anchor":"a","type":"string"}}})", "\"\"", "1"},
    SchemaCase{R"({"$ref":"https://json-schema.org/draft/2020-12/schema"})",
               "true\n{\"type\":\"string\",\"items\":{\"minLength\":1}}",
               "1\n{\"type\":\"strin\"}\n{\"items\":{\"minLength\":-1}}\n{\"$defs\":{\"a\":{\"allOf\":[]}}}"},
    SchemaCase{
        R"({"$schema":"https://json-schema.org/draft/2020-12/schema#","prefixItems":[{"type":"string"}]})",
        "[\"\"]", "[1]"},
    SchemaCase{R"({"$id":"http://x.example/","items":{"$ref":"old"},"$defs":{"o":{"$id":"old",
      "$schema":"http://json-schema.org/draft-07/schema","items":[{"type":"string"}],"additionalItems":false}}})",
               "[[\"\"]]", "[[1]]\n[[\"\",1]]"},
};

inline constexpr std::array kDraft7 = {
    SchemaCase{R"({"items":[{"type":"integer"},{"type":"string"}],"additionalItems":{"type":"null"}})",
               "[1,\"a\",null]\n[1]\n[]", "[\"a\"]\n[1,\"a\",2]"},
    SchemaCase{R"({"items":{},"additionalItems":false})", "[1,2]", ""},
    SchemaCase{R"({"dependencies":{"a":["b"],"c":{"minProperties":2}}})",
               "{\"a\":1,\"b\":1}\n{\"c\":1,\"d\":1}\n{}", "{\"a\":1}\n{\"c\":1}"},
    SchemaCase{R"({"definitions":{"a":{"minimum":3}},"$ref":"#/definitions/a","maximum":5})", "4\n6", "2"},
    SchemaCase{R"({"definitions":{"a":{"$id":"#here","type":"string"}},"items":{"$ref":"#here"}})", "[\"\"]",
               "[1]"},
    SchemaCase{
        R"({"unevaluatedProperties":false,"prefixItems":[false],"dependentRequired":{"a":["b"]},"minContains":5})",
        "{\"a\":1}\n[1]", ""},
    SchemaCase{R"({"$ref":"http://json-schema.org/draft-07/schema#"})", "true\n{\"items\":[{}]}",
               "1\n{\"minLength\":-1}\n{\"definitions\":{\"a\":{\"type\":1}}}"},
    SchemaCase{
        R"({"$schema":"https://json-schema.org/draft/2020-12/schema","prefixItems":[{"type":"string"}]})",
        "[\"\"]", "[1]"},
};

}  // namespace fairlead::json::cases
