// Tests of Writer: its output is valid JSON and round-trips.
#include "fairlead/json/writer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fairlead/json/view.hpp"

namespace fairlead::json {
namespace {

std::string written(std::string_view value) {
  std::string out;
  append_string(out, value);
  return out;
}

std::string number(double value) {
  return Writer().number(value).text();
}

TEST(WriterTest, InsertsCommasAndColons) {
  Writer w;
  w.begin_object().key("name").string("x").key("n").integer(3).key("list").begin_array();
  w.boolean(true).null().begin_object().end_object().begin_array().end_array().integer(-1).end_array();
  w.key("last").raw("{\"a\": 1}").end_object();
  const Raw raw = std::move(w).finish();
  EXPECT_EQ(raw.text(), R"({"name":"x","n":3,"list":[true,null,{},[],-1],"last":{"a": 1}})");
  EXPECT_EQ(validate(raw.text()), std::nullopt);
}

TEST(WriterTest, WritesSingleScalar) {
  EXPECT_EQ(Writer().string("a").text(), "\"a\"");
  EXPECT_EQ(std::move(Writer().null()).finish().text(), "null");
}

// R1.2: a member whose value is null is written. (A caller omits a member by not writing its key.)
TEST(WriterTest, EscapesKeys) {
  EXPECT_EQ(Writer().begin_object().key("a\"b").null().end_object().text(), R"({"a\"b":null})");
}

TEST(WriterTest, WritesIntegersInFull) {
  EXPECT_EQ(Writer().integer(std::numeric_limits<std::int64_t>::min()).text(), "-9223372036854775808");
  EXPECT_EQ(Writer().unsigned_integer(std::numeric_limits<std::uint64_t>::max()).text(),
            "18446744073709551615");
}

TEST(WriterTest, WritesShortestRoundTripDouble) {
  EXPECT_EQ(number(0.1), "0.1");
  EXPECT_EQ(number(3), "3");
  EXPECT_EQ(number(-0.0), "-0");
  for (const double value : {1e22, 5e-324, 1.7976931348623157e308, 0.30000000000000004, -123456.789, 1e-7}) {
    EXPECT_EQ(validate(number(value)), std::nullopt) << number(value);
    EXPECT_EQ(View(number(value)).as_double(), value);
  }
}

TEST(WriterTest, WritesNullForNanAndInfinity) {
  EXPECT_EQ(number(std::nan("")), "null");
  EXPECT_EQ(number(std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(number(-std::numeric_limits<double>::infinity()), "null");
}

TEST(WriterTest, EscapesQuotesBackslashesAndControlCharacters) {
  EXPECT_EQ(written("\"\\\b\f\n\r\t/"), R"("\"\\\b\f\n\r\t/")");
  EXPECT_EQ(written(std::string_view("\0\x01\x1f\x7f", 4)), "\"\\u0000\\u0001\\u001f\x7f\"");
  EXPECT_EQ(written("gr\xc3\xbc\xc3\x9f \xe7\xbe\x8a \xf0\x9f\x90\x91"),
            "\"gr\xc3\xbc\xc3\x9f \xe7\xbe\x8a \xf0\x9f\x90\x91\"");
}

TEST(WriterTest, StringsAreEscapedAtEachPositionAndLength) {
  for (std::size_t length = 1; length <= 70; ++length) {
    const std::string plain(length, 'x');
    EXPECT_EQ(written(plain), '"' + plain + '"');
    for (std::size_t at = 0; at < length; ++at) {
      for (const auto& [raw, escaped] :
           {std::pair("\"", "\\\""), {"\n", "\\n"}, {"\xc3\xa4", "\xc3\xa4"}, {"\xff", "\xef\xbf\xbd"}}) {
        std::string value = plain;
        std::string expected = plain;
        EXPECT_EQ(written(value.replace(at, 1, raw)), '"' + expected.replace(at, 1, escaped) + '"');
      }
    }
  }
}

TEST(WriterTest, ReplacesInvalidUtf8) {
  EXPECT_EQ(written("a\xff"
                    "b"),
            "\"a\xef\xbf\xbd"
            "b\"");
  for (const auto wrong : {"\xc3", "\x80", "\xed\xa0\x80", "\xf0\x9f\x90", "\xc0\xaf", "\xf5\x80\x80\x80"}) {
    EXPECT_EQ(validate(written(wrong)), std::nullopt);
    EXPECT_NE(written(wrong).find("\xef\xbf\xbd"), std::string::npos);
  }
}

TEST(WriterTest, EveryByteRoundTripsAtEveryAlignment) {
  for (std::size_t before = 0; before < 70; ++before) {
    for (int byte = 0; byte < 128; ++byte) {
      const std::string value =
          std::string(before, 'x') + static_cast<char>(byte) + std::string(before % 7, 'y');
      ASSERT_EQ(View(written(value)).as_string(), value);
    }
  }
  EXPECT_EQ(string("\xe7\xbe\x8a").text(), "\"\xe7\xbe\x8a\"");
}

// R2.1: line framing does not search text that cannot contain a line break.
TEST(WriterTest, WritesStringBetweenRawText) {
  Writer writer;
  writer.begin_array()
      .integer(1)
      .raw_with_string(R"({"t":)", "a\"\n", "}")
      .raw_with_string("", "b", "")
      .end_array();
  EXPECT_EQ(writer.text(), R"([1,{"t":"a\"\n"},"b"])");
  EXPECT_TRUE(std::move(writer).finish().is_one_line());
}

TEST(WriterTest, LongStringsAfterReserveAreComplete) {
  const std::string text = std::string(100'000, 'x') + "\"" + std::string(100'000, 'y');
  Writer writer;
  writer.reserve(10).begin_array().string(text).string(text).end_array();
  const std::string once = '"' + std::string(100'000, 'x') + "\\\"" + std::string(100'000, 'y') + '"';
  EXPECT_TRUE(writer.text() == "[" + once + "," + once + "]");
}

TEST(WriterTest, ReportsWhetherTextIsOneLine) {
  Writer plain;
  plain.begin_array().string("\n").boolean(true).raw(*Raw::parse("{}")).end_array();
  EXPECT_TRUE(std::move(plain).finish().is_one_line());
  Writer unknown;
  unknown.begin_array().raw("{\n}").end_array();
  EXPECT_FALSE(std::move(unknown).finish().is_one_line());
  Writer broken;
  broken.raw(*Raw::parse("[\n]"));
  EXPECT_FALSE(std::move(broken).finish().is_one_line());
}

#ifndef NDEBUG
TEST(WriterDeathTest, AssertsOnMisuse) {
  EXPECT_DEATH(Writer().begin_object().integer(1), "");
  EXPECT_DEATH(Writer().begin_array().key("a"), "");
  EXPECT_DEATH(Writer().begin_array().end_object(), "");
  EXPECT_DEATH(Writer().integer(1).integer(2), "");
  EXPECT_DEATH(Writer().begin_object().key("a").end_object(), "");
}
#endif

}  // namespace
}  // namespace fairlead::json
