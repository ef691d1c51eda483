// Tests of walk.hpp, MemberIndex and Members: they find the same members and elements as a Scanner, wherever
// strings, escapes and brackets are.
#include "json/walk.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "fairlead/json/view.hpp"
#include "json/members.hpp"

namespace fairlead::json {
namespace {

using Parts = std::vector<std::string>;

Parts scanned(View view) {
  Parts parts;
  Scanner scanner(view.text());
  std::string_view key;
  std::string_view value;
  bool escaped = false;
  if (view.is(Type::object) && scanner.begin_object()) {
    while (scanner.next_member(key, escaped) && scanner.value(value))
      parts.push_back(std::string(key) + (escaped ? "\\" : "") + std::string(value));
  }
  if (view.is(Type::array) && scanner.begin_array()) {
    while (scanner.next_element() && scanner.value(value)) parts.emplace_back(value);
  }
  return parts;
}

Parts walked(View view) {
  Parts parts;
  if (view.is(Type::object)) {
    walk_members(view.text(), [&](std::string_view key, bool escaped, std::string_view value) {
      parts.push_back(std::string(key) + (escaped ? "\\" : "") + std::string(value));
      return true;
    });
  }
  if (view.is(Type::array)) {
    walk_elements(view.text(), [&](std::string_view value) {
      parts.emplace_back(value);
      return true;
    });
  }
  return parts;
}

void expect_same(const std::string& text) {
  ASSERT_FALSE(validate(text)) << text;
  EXPECT_EQ(walked(View(text)), scanned(View(text))) << text;
}

// Generates random values with many brackets, commas and escapes inside strings.
class Generator {
 public:
  std::string value(int depth) {
    switch (pick(depth > 0 ? 7 : 4)) {
      case 0: return string();
      case 1: return std::to_string(pick(1'000'000));
      case 2: return "true";
      case 3: return "-1.5e3";
      case 4:
      case 5: return container("{", "}", depth);
      default: return container("[", "]", depth);
    }
  }

 private:
  unsigned pick(unsigned choices) { return static_cast<unsigned>(random_()) % choices; }
  std::string space() { return pick(5) == 0 ? std::string(pick(3), " \t\n\r"[pick(4)]) : ""; }
  std::string string() {
    static const std::string kPieces[] = {R"(\")", R"(\\)", R"(\u0041)", "{", "]", ",", ":", "é", "a", "b"};
    std::string text = "\"";
    for (unsigned left = pick(8) == 0 ? pick(200) : pick(6); left > 0; --left) text += kPieces[pick(10)];
    return text + "\"";
  }
  std::string container(const std::string& open, const std::string& close, int depth) {
    std::string text = open + space();
    const unsigned size = pick(6);
    for (unsigned i = 0; i < size; ++i) {
      if (i > 0) text += "," + space();
      if (open == "{") text += string() + space() + ":" + space();
      text += value(depth - 1) + space();
    }
    return text + close;
  }

  std::mt19937 random_{7};
};

TEST(WalkTest, AgreesWithScanner) {
  Generator generator;
  for (int i = 0; i < 20'000; ++i) expect_same(generator.value(5));
}

TEST(WalkTest, HandlesRunsOfBackslashesAcrossWindows) {
  for (std::size_t before = 0; before < 140; ++before) {
    for (std::size_t run = 0; run < 8; run += 2) {
      const std::string text = std::string(before, 'a') + std::string(run, '\\');
      expect_same("[\"" + text + "\",[\"" + text + R"(\"]",["x"]],1])");
      expect_same("{\"" + text + R"(\"":{"a":"}"},"b":[")" + text + "\"]}");
    }
  }
}

TEST(WalkTest, FindsEndOfNestingAtEveryPositionInWindow) {
  for (std::size_t depth = 1; depth < 200; ++depth)
    expect_same("[" + std::string(depth, '[') + std::string(depth, ']') + ",2]");
}

TEST(WalkTest, LongStringsEndAtTheirClosingQuote) {
  for (const std::size_t before : {0u, 15u, 16u, 17u, 100u, 5000u}) {
    for (const std::string_view escapes : {"", "\\\"", "\\\\", "\\\\\\\"", "\\n"}) {
      const std::string content = std::string(before, 'x') + std::string(escapes) + std::string(70, 'y');
      const std::string object = R"({"a":")" + content + R"(","b":["]",{}]})";
      EXPECT_EQ(walked(View(object)), scanned(View(object)));
      EXPECT_EQ(View("[" + object + ",1]")[1].text(), "1");
    }
  }
}

TEST(WalkTest, ManyShallowValuesDoNotEndContainer) {
  for (std::size_t before = 0; before < 70; ++before) {
    for (const char* value : {"[]", "[[]]", "{}", R"([{"]":"["}])", "[1,[2,[3]]]"}) {
      std::string text = "[" + std::string(before, ' ') + "[";
      for (int i = 0; i < 60; ++i) text += std::string(value) + ",";
      expect_same(text + value + "],[]]");
    }
  }
}

// Returns the members of the object `text` in the form of scanned(), found by its index.
Parts indexed(const MemberIndex& index, std::string_view text) {
  Parts parts;
  index.each(text, [&](std::string_view key, bool escaped, std::string_view value) {
    parts.push_back(std::string(key) + (escaped ? "\\" : "") + std::string(value));
    return true;
  });
  return parts;
}

TEST(MemberIndexTest, AgreesWithScannerForAnyNumberOfMembers) {
  for (const std::size_t count : {0u, 1u, 8u, 9u, 10u, 1023u, 1024u, 1025u, 3000u}) {
    std::string text = "{";
    for (std::size_t i = 0; i < count; ++i)
      text += (i == 0 ? "\"k" : " , \"k") + std::string(i % 3 == 0 ? "\\n" : "") + std::to_string(i) +
              "\" : [" + std::to_string(i) + "]";
    text += "}";
    MemberIndex by_scan;
    Scanner scanner(text);
    std::string_view object;
    ASSERT_EQ(scanner.peek(), Type::object);
    ASSERT_TRUE(MemberIndex::Builder(by_scan, text).scan(scanner, object));
    EXPECT_EQ(by_scan.member_count(), count);
    EXPECT_EQ(indexed(by_scan, text), scanned(View(text)));
    const MemberIndex by_walk = MemberIndex::of(View(text));
    EXPECT_EQ(by_walk.member_count(), std::min(count, MemberIndex::kMaxMembers + 1));
    EXPECT_EQ(indexed(by_walk, text), scanned(View(text)));
    const std::string last = "k" + std::to_string(count - 1);
    if (count > 0 && (count - 1) % 3 != 0) {
      EXPECT_EQ(by_scan.find(text, last).text(), "[" + std::to_string(count - 1) + "]");
    }
  }
  EXPECT_EQ(MemberIndex::of(View("[1]")).member_count(), 0u);
}

TEST(MemberIndexTest, ReturnsLastValueOfRepeatedKey) {
  const std::string text = R"({"a":1,"b":2,"\u0061":3})";
  EXPECT_EQ(MemberIndex::of(View(text)).find(text, "a").text(), "3");
  EXPECT_TRUE(MemberIndex::of(View(text)).find(text, "c").absent());
}

TEST(MembersTest, ReportsMoreMembersThanMaximum) {
  EXPECT_FALSE(has_more_members_than(View(R"({"a":1,"b":[2,3]})"), 2));
  EXPECT_TRUE(has_more_members_than(View(R"({"a":1,"b":[2,3]})"), 1));
  EXPECT_FALSE(has_more_members_than(View("[1,2,3]"), 0));
  EXPECT_FALSE(has_more_members_than(View(), 0));
}

TEST(MembersTest, FindsSeveralMembersInOnePass) {
  const std::string text = R"({"a":1,"\u0062":[2],"a":3,"d":"x"})";
  const Members members{View(text), {"a", "b", "c"}};
  EXPECT_EQ(members["a"].text(), "3");
  EXPECT_EQ(members["b"].text(), "[2]");
  EXPECT_TRUE(members["c"].absent());
  EXPECT_TRUE(members["d"].absent());
  EXPECT_TRUE(Members(View("[1]"), {"a"})["a"].absent());
  EXPECT_TRUE(Members(View(), {"a"})["a"].absent());
}

}  // namespace
}  // namespace fairlead::json
