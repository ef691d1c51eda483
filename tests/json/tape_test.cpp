// Tests of Tape: the index must agree with the text.
#include "json/tape.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "cases.hpp"
#include "fairlead/json/view.hpp"

namespace fairlead::json {
namespace {

// Compares the entry of a value, and the entries inside it, with a View of the same text.
void expect_same(const Tape& tape, TapeIndex at, View view) {
  ASSERT_EQ(tape.text(at), view.text());
  ASSERT_EQ(tape.type(at), view.type());
  if (view.is(Type::string)) {
    std::string buffer;
    ASSERT_EQ(tape.string(at, buffer), view.as_string());
  }
  if (!view.is(Type::array) && !view.is(Type::object)) return;
  ASSERT_EQ(tape.item_count(at), view.size());
  TapeIndex child = at + 1;
  view.each_element([&](View element) {
    expect_same(tape, child, element);
    child = tape.next(child);
    return true;
  });
  view.each_member([&](std::string_view key, bool escaped, View value) {
    EXPECT_EQ(tape.unquoted(child), key);
    EXPECT_EQ(tape.needs_decoding(child), escaped);
    expect_same(tape, child + 1, value);
    child = tape.next(child + 1);
    return true;
  });
  ASSERT_EQ(child, tape.next(at));
}

TEST(TapeTest, AgreesWithView) {
  for (const std::string_view text : cases::kAccepted) {
    Tape tape;
    ASSERT_EQ(tape.read(text, {}), Tape::Problem::none) << text;
    expect_same(tape, 0, View(text));
  }
  std::string large = "[";
  for (int i = 0; i < 1000; ++i)
    large +=
        R"( {"key )" + std::string(static_cast<std::size_t>(i % 130), 'x') + R"(":[1, "\n", {}],"b":null},)";
  large += "0]";
  Tape tape;
  ASSERT_EQ(tape.read(large, {}), Tape::Problem::none);
  expect_same(tape, 0, View(large));
}

TEST(TapeTest, AgreesWithViewAboutLongStrings) {
  for (const std::string_view escapes : {"", "\\\"", "\\\\", "\\n"}) {
    const std::string content = std::string(200, 'x') + std::string(escapes) + std::string(200, 'y');
    const std::string text = R"({"a":")" + content + R"(","b":["c",")" + content + "\"]}";
    Tape tape;
    ASSERT_EQ(tape.read(text, {}), Tape::Problem::none);
    expect_same(tape, 0, View(text));
  }
}

TEST(TapeTest, ReturnsPointersToValuesAndKeys) {
  Tape tape;
  ASSERT_EQ(tape.read(R"({"a":[1,{"b/c~":[2]}],"\u0064":3})", {}), Tape::Problem::none);
  std::vector<std::string> pointers;
  std::string keys;
  for (TapeIndex at = 0; at < tape.size(); ++at) {
    pointers.push_back(tape.pointer(at));
    keys += tape.is_key(at) ? 'k' : '.';
  }
  EXPECT_EQ(pointers, (std::vector<std::string>{"", "/a", "/a", "/a/0", "/a/1", "/a/1/b~1c~0", "/a/1/b~1c~0",
                                                "/a/1/b~1c~0/0", "/d", "/d"}));
  EXPECT_EQ(keys, ".k...k..k.");
}

TEST(TapeTest, FindsLastMemberOfRepeatedKey) {
  Tape tape;
  ASSERT_EQ(tape.read(R"({"a":1,"b":2,"\u0061":3})", {}), Tape::Problem::none);
  EXPECT_EQ(tape.text(tape.member(0, "a")), "3");
  EXPECT_EQ(tape.text(tape.member(0, "b")), "2");
  EXPECT_EQ(tape.member(0, "c"), kNoIndex);
}

TEST(TapeTest, FailsWhenBoundsAreExceeded) {
  Tape tape;
  EXPECT_EQ(tape.read("[[[]]]", {.max_depth = 3}), Tape::Problem::none);
  EXPECT_EQ(tape.read("[[[]]]", {.max_depth = 2}), Tape::Problem::too_deep);
  EXPECT_EQ(tape.read("[1,2,3]", {.max_values = 4}), Tape::Problem::none);
  EXPECT_EQ(tape.read("[1,2,3]", {.max_values = 3}), Tape::Problem::too_many_values);
}

// read() is not a validator, but it never reads beyond the text and rejects every invalid structure.
TEST(TapeTest, RejectsInvalidStructure) {
  const std::string_view text = R"({"a":["\u0041\n",-1.5e3,true],"b":{"c":null}})";
  for (std::size_t size = 0; size < text.size(); ++size) {
    const std::string cut(
        text.substr(0, size));  // a copy of this size, so that a sanitizer detects a read past its end
    Tape tape;
    EXPECT_EQ(tape.read(cut, {}), Tape::Problem::not_json) << cut;
  }
  for (std::size_t size = 0; size < 200; ++size) {  // the end is at every position of a window of 64 bytes
    Tape tape;
    EXPECT_EQ(tape.read(std::string(size, ' ') + "\"", {}), Tape::Problem::not_json) << size;
    EXPECT_EQ(tape.read("\"" + std::string(size, 'x'), {}), Tape::Problem::not_json) << size;
    EXPECT_EQ(tape.read(std::string(size, ' ') + "\"\"", {}), Tape::Problem::none) << size;
  }
  for (const std::string_view broken :
       {"[1 2]", "[1,]", "{\"a\" 1}", "{1:2}", "[}", "1]", "\"\\x\"", "tru", "[\0]"}) {
    Tape tape;
    EXPECT_EQ(tape.read(broken, {}), Tape::Problem::not_json) << broken;
  }
}

}  // namespace
}  // namespace fairlead::json
