// Tests of View and Raw (R1.6: nothing is decoded before it is requested).
#include "fairlead/json/view.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "cases.hpp"

namespace fairlead::json {
namespace {

std::optional<std::int64_t> integer(std::string_view text) {
  return View(text).as_int();
}

TEST(ViewTest, FindsMembersByName) {
  const View view(R"( {"a":1,"b":{"c":[10,"x",null]},"":true} )");
  EXPECT_EQ(view["a"].text(), "1");
  EXPECT_EQ(view["b"]["c"][1].as_string(), "x");
  EXPECT_TRUE(view["b"]["c"][2].is(Type::null));
  EXPECT_EQ(view[""].as_bool(), true);
  EXPECT_TRUE(view["z"].absent());
  EXPECT_TRUE(view["a"]["z"].absent());
  EXPECT_TRUE(view["b"]["c"][3].absent());
  EXPECT_TRUE(view[0].absent());
  EXPECT_EQ(view.size(), 3u);
  EXPECT_EQ(view["b"]["c"].size(), 3u);
  EXPECT_EQ(view["a"].size(), 0u);
}

TEST(ViewTest, ReturnsLastValueOfRepeatedKey) {
  EXPECT_EQ(View(R"({"a":1,"b":2,"a":3})")["a"].as_int(), 3);
  EXPECT_EQ(View(R"({"a":1,"\u0061":{"x":5}})")["a"]["x"].as_int(), 5);
}

TEST(ViewTest, FindsEscapedKeys) {
  EXPECT_EQ(View(R"({"meth\u006fd":"ping"})")["method"].as_string(), "ping");
  EXPECT_TRUE(key_equals(R"(meth\u006fd)", true, "method"));
  EXPECT_FALSE(key_equals(R"(meth\u006fd)", true, R"(meth\u006fd)"));
  EXPECT_TRUE(key_equals(R"(a\/b)", true, "a/b"));
  EXPECT_FALSE(key_equals("methods", false, "method"));
}

TEST(ViewTest, IsAbsentWithoutText) {
  const View view;
  EXPECT_TRUE(view.absent());
  EXPECT_TRUE(View("").absent());
  EXPECT_TRUE(View(Raw()).absent());
  EXPECT_FALSE(view.is(Type::null));
  EXPECT_TRUE(view["a"].absent());
  EXPECT_TRUE(view[0].absent());
  EXPECT_EQ(view.size(), 0u);
  EXPECT_EQ(view.as_bool(), std::nullopt);
  EXPECT_EQ(view.as_int(), std::nullopt);
  EXPECT_EQ(view.as_double(), std::nullopt);
  EXPECT_EQ(view.as_string(), std::nullopt);
}

TEST(ViewTest, OmitsWhiteSpaceAroundValue) {
  for (const char* const text : {"1", " 1", "1 ", "\t1", "1\n", "\r\n 1 \t"})
    EXPECT_EQ(View(text).text(), "1");
  EXPECT_EQ(View(R"( {"a" : " x " } )").text(), R"({"a" : " x " })");
  EXPECT_TRUE(View("").absent());
  EXPECT_TRUE(View(" \t\r\n").absent());
}

TEST(ViewTest, ValueIsOfExactlyOneType) {
  constexpr Type kTypes[] = {Type::null,   Type::boolean, Type::number,
                             Type::string, Type::array,   Type::object};
  const std::pair<const char*, Type> values[] = {
      {"null", Type::null}, {"true", Type::boolean}, {"false", Type::boolean},
      {"-1", Type::number}, {"0", Type::number},     {"\"{\"", Type::string},
      {"[]", Type::array},  {"{}", Type::object},    {" {} ", Type::object}};
  for (const auto& [text, type] : values) {
    for (const Type other : kTypes) EXPECT_EQ(View(text).is(other), other == type) << text;
    EXPECT_FALSE(View().is(type));
  }
}

TEST(ViewTest, ReturnsNulloptForOtherTypes) {
  EXPECT_EQ(View("\"true\"").as_bool(), std::nullopt);
  EXPECT_EQ(View("\"1\"").as_int(), std::nullopt);
  EXPECT_EQ(View("true").as_double(), std::nullopt);
  EXPECT_EQ(View("1").as_string(), std::nullopt);
  EXPECT_EQ(View("null").as_bool(), std::nullopt);
}

TEST(ViewTest, ReadsEverySpellingOfInteger) {
  for (const auto text :
       {"3", "3.0", "3e0", "30e-1", "0.3e1", "3.000E+0", "300e-2", "0.00003e5", "3.0000000000000000000000"}) {
    EXPECT_EQ(integer(text), 3) << text;
  }
  for (const auto text : {"0", "-0", "0.0", "-0e5", "0e99999999999999999999", "0.000e-7"})
    EXPECT_EQ(integer(text), 0) << text;
  EXPECT_EQ(integer("-120e-1"), -12);
  EXPECT_EQ(integer("1e18"), 1'000'000'000'000'000'000);
  EXPECT_EQ(integer("9007199254740993"), 9007199254740993);
  EXPECT_EQ(integer("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(integer("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(integer("922337203685477580.7e1"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(integer("-9.223372036854775808E18"), std::numeric_limits<std::int64_t>::min());
}

TEST(ViewTest, RejectsNumbersThatAreNotInt64) {
  for (const auto text :
       {"3.5", "1e-1", "35e-1", "9223372036854775808", "-9223372036854775809", "1e19", "1e400", "1e-400",
        "100000000000000000000000000000", "1e99999999999999999999", "1e-99999999999999999999",
        "9223372036854775807.5", "0.1", "123456789012345678901234567890e-5"}) {
    EXPECT_EQ(integer(text), std::nullopt) << text;
  }
}

TEST(ViewTest, ReadsDoubles) {
  EXPECT_EQ(View("1.25").as_double(), 1.25);
  EXPECT_EQ(View("-0").as_double(), 0.0);
  EXPECT_TRUE(std::signbit(*View("-0").as_double()));
  EXPECT_EQ(View("1e308").as_double(), 1e308);
  EXPECT_EQ(View("5e-324").as_double(), 5e-324);
  EXPECT_EQ(View("1e400").as_double(), std::nullopt);
  EXPECT_EQ(View("-1e400").as_double(), std::nullopt);
  EXPECT_EQ(View("1e-400").as_double(), 0.0);
  EXPECT_TRUE(std::signbit(*View("-1e-99999999999999999999").as_double()));
  EXPECT_EQ(View("1e99999999999999999999").as_double(), std::nullopt);
  EXPECT_EQ(View("0e99999999999999999999").as_double(), 0.0);
  EXPECT_EQ(View("9007199254740993").as_double(), 9007199254740992.0);
}

TEST(ViewTest, DecodesEscapes) {
  EXPECT_EQ(unescape(R"(a\"\\\/\b\f\n\r\tz)"), "a\"\\/\b\f\n\r\tz");
  EXPECT_EQ(unescape(R"(\u0041\u00e9\u20AC)"), "A\xc3\xa9\xe2\x82\xac");
  EXPECT_EQ(unescape(R"(\uD834\uDD1E!)"), "\xf0\x9d\x84\x9e!");
  EXPECT_EQ(unescape(R"(\u0000)"), std::string(1, '\0'));
  EXPECT_EQ(unescape("plain \xe7\xbe\x8a"), "plain \xe7\xbe\x8a");
  EXPECT_EQ(unescape(""), "");
}

TEST(ViewTest, ReplacesLoneSurrogates) {
  constexpr auto kReplaced = "\xef\xbf\xbd";
  EXPECT_EQ(unescape(R"(\ud800)"), kReplaced);
  EXPECT_EQ(unescape(R"(\udc00x)"), std::string(kReplaced) + "x");
  EXPECT_EQ(unescape(R"(\ud800\u0041)"), std::string(kReplaced) + "A");
  EXPECT_EQ(unescape(R"(\ud800\n)"), std::string(kReplaced) + "\n");
  EXPECT_EQ(unescape(R"(\ud800\ud834\udd1e)"), std::string(kReplaced) + "\xf0\x9d\x84\x9e");
  EXPECT_EQ(unescape(R"(\ud800abcdef)"), std::string(kReplaced) + "abcdef");
}

TEST(ViewTest, StopsIteratingWhenVisitorReturnsFalse) {
  std::vector<std::string> keys;
  View(R"({"a":1,"b":2,"c":3})").each_member([&](std::string_view key, bool, View) {
    keys.emplace_back(key);
    return keys.size() < 2;
  });
  EXPECT_EQ(keys, (std::vector<std::string>{"a", "b"}));
  int sum = 0;
  View("[1,2,3,4]").each_element([&](View value) {
    sum += static_cast<int>(*value.as_int());
    return sum < 3;
  });
  EXPECT_EQ(sum, 3);
}

TEST(ViewTest, ReadsTextOfAnyDepth) {
  const std::string deep = "{\"a\":" + std::string(5000, '[') + std::string(5000, ']') + ",\"b\":7}";
  EXPECT_EQ(View(deep)["b"].as_int(), 7);
}

// R1.3, R1.6: numbers are never parsed and written again.
TEST(RawTest, PreservesSpellingOfNumbers) {
  for (const auto text :
       {"9007199254740993", "100000000000000000000000000000", "1e400", "-0", "1.0", "1E+2"}) {
    EXPECT_EQ(Raw::parse(text)->text(), text);
    EXPECT_EQ(View(*Raw::parse("[" + std::string(text) + "]"))[0].text(), text);
  }
}

TEST(RawTest, CopiesValueWithoutSurroundingWhiteSpace) {
  const auto raw = Raw::parse(" {\"a\" : 1}\n");
  EXPECT_EQ(raw->text(), "{\"a\" : 1}");
  EXPECT_FALSE(raw->absent());
  EXPECT_TRUE(Raw().absent());
  EXPECT_EQ(Raw::null().text(), "null");
}

TEST(RawTest, ReportsWhetherTextIsOneLine) {
  EXPECT_TRUE(Raw::parse("{\"a\": \"\\n\"}")->is_one_line());
  EXPECT_FALSE(Raw::parse("{\n}")->is_one_line());
}

TEST(RawTest, ParseRejectsInvalidJson) {
  for (const auto text : cases::kRejected) {
    const auto raw = Raw::parse(text);
    ASSERT_FALSE(raw.has_value()) << text;
    EXPECT_EQ(raw.error().kind(), ErrorKind::serialize);
  }
  EXPECT_EQ(Raw::parse("[1,]").error().message(), "unexpected character ']' at byte 3");
  EXPECT_FALSE(Raw::parse("[[]]", 1).has_value());
}

TEST(ViewTest, AsStringReturnsNulloptOverLimit) {
  const std::string escaped = R"("\u0041\u0041\u0041")";
  EXPECT_EQ(View(escaped).as_string(3), "AAA");
  EXPECT_EQ(View(escaped).as_string(2), std::nullopt);
  EXPECT_EQ(View(R"("")").as_string(0), "");
  EXPECT_EQ(View(R"("abc")").as_string(2), std::nullopt);
  EXPECT_EQ(View("123").as_string(100), std::nullopt);
}

TEST(ViewTest, ReadStringDecodesIntoGivenMemory) {
  std::string out(100, 'x');
  const char* const memory = out.data();
  EXPECT_TRUE(View(R"("a\u00e9\nb")").read_string(out));
  EXPECT_EQ(out, "a\xc3\xa9\nb");
  EXPECT_EQ(out.data(), memory);
  EXPECT_FALSE(View("12").read_string(out));
  EXPECT_EQ(out, "a\xc3\xa9\nb");
  EXPECT_FALSE(View().read_string(out));
}

TEST(ViewTest, LargeStringsAreDecodedCompletely) {
  const std::string plain(100'000, 'x');
  EXPECT_EQ(View("\"" + plain + "\"").as_string(), plain);
  EXPECT_EQ(View("\"" + plain + "\\n" + plain + "\"").as_string(), plain + "\n" + plain);
}

}  // namespace
}  // namespace fairlead::json
