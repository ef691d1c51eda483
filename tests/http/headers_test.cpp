#include "fairlead/http/headers.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "http/syntax.hpp"

namespace fairlead::http {
namespace {

TEST(HeadersTest, NamesAreCaseInsensitiveAndValuesTrimmed) {
  Headers headers{{"Content-Type", " application/json\t"}};
  EXPECT_EQ(headers.get("content-TYPE"), "application/json");
  EXPECT_TRUE(headers.has("CONTENT-TYPE"));
  EXPECT_FALSE(headers.has("Content-Typ"));
}

TEST(HeadersTest, SetReplacesEveryFieldOfThatName) {
  Headers headers{{"A", "1"}, {"a", "2"}, {"B", "3"}};
  EXPECT_EQ(headers.count("A"), 2U);
  headers.set("a", "4");
  EXPECT_EQ(headers.count("A"), 1U);
  EXPECT_EQ(headers.get("A"), "4");
  EXPECT_EQ(headers.get("B"), "3");
}

TEST(HeadersTest, LookupReturnsCountAndFirstValue) {
  const Headers headers{{"A", " 1 "}, {"b", "2"}, {"a", "3"}};
  EXPECT_EQ(headers.lookup("a").count, 2U);
  EXPECT_EQ(headers.lookup("a").value, "1");
  EXPECT_EQ(headers.lookup("B").value, "2");
  EXPECT_EQ(headers.lookup("c").count, 0U);
}

TEST(HeadersTest, FieldWithEmptyValueIsPresent) {
  const Headers headers{{"Empty", "  "}};
  EXPECT_TRUE(headers.has("Empty"));
  EXPECT_EQ(headers.get("Empty"), "");
}

TEST(HeadersTest, OnlyLettersAreCaseInsensitiveInNamesOfAnyLength) {
  const std::string other = "0123456789-_ABYZabyz@[`{";
  for (std::size_t size = 1; size <= other.size(); ++size) {
    const std::string_view name = std::string_view(other).substr(0, size);
    std::string upper(name);
    for (char& c : upper) {
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    }
    EXPECT_TRUE(equals_ignore_case(name, upper)) << name;
    for (std::size_t at = 0; at < size; ++at) {
      std::string changed(name);
      changed[at] = static_cast<char>(changed[at] ^ 0x80);
      EXPECT_FALSE(equals_ignore_case(name, changed)) << size << " " << at;
      changed[at] = static_cast<char>(name[at] ^ 0x20);
      const bool letter = (changed[at] >= 'a' && changed[at] <= 'z') || (name[at] >= 'a' && name[at] <= 'z');
      EXPECT_EQ(equals_ignore_case(name, changed), letter) << size << " " << at;
    }
  }
}

TEST(HeadersTest, FieldsKeepOrderAndContent) {
  Headers headers;
  const std::string longest(5000, 'x');
  headers.add("First", "");
  headers.add("", "no name");
  headers.add("Long", longest);
  headers.add("first", std::string_view("a\0b", 3));
  std::vector<std::pair<std::string, std::string>> seen;
  for (const auto& [name, value] : headers) seen.emplace_back(name, value);
  const std::vector<std::pair<std::string, std::string>> expected{
      {"First", ""}, {"", "no name"}, {"Long", longest}, {"first", std::string("a\0b", 3)}};
  EXPECT_EQ(seen, expected);
}

TEST(HeadersTest, EraseRemovesAllFieldsOfOneName) {
  Headers headers{{"A", "1"}, {"B", "2"}, {"a", "3"}, {"C", "4"}};
  headers.erase("A");
  EXPECT_FALSE(headers.has("a"));
  EXPECT_EQ(headers.get("B"), "2");
  EXPECT_EQ(headers.get("C"), "4");
  headers.erase("D");
  EXPECT_EQ(headers.count("C"), 1U);
}

TEST(HeadersTest, CopyIsIndependentOfOriginal) {
  Headers headers{{"A", "1"}};
  const Headers copy = headers;
  headers.set("A", "2");
  EXPECT_EQ(copy.get("A"), "1");
}

TEST(HttpSyntaxTest, ControlCharactersAreFoundAtEveryOffset) {
  for (std::size_t size = 1; size <= 20; ++size) {
    for (std::size_t at = 0; at < size; ++at) {
      for (int byte = 0; byte < 256; ++byte) {
        std::string value(size, '~');
        value[at] = static_cast<char>(byte);
        const bool allowed = byte == '\t' || (byte >= 0x20 && byte != 0x7f);
        ASSERT_EQ(is_field_value(value), allowed) << size << " " << at << " " << byte;
      }
    }
  }
}

}  // namespace
}  // namespace fairlead::http
