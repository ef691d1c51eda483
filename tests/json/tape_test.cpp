// The tape: an index of a text must say the same as the text.
#include "json/tape.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "cases.hpp"
#include "fairlead/json/view.hpp"

namespace fairlead::json {
namespace {

// Everything the tape says about a value against what a View reads.
void expect_same(const Tape& tape, Index at, View view) {
  ASSERT_EQ(tape.text(at), view.text());
  ASSERT_EQ(tape.type(at), view.type());
  if (view.is(Type::string)) {
    std::string room;
    ASSERT_EQ(tape.string(at, room), view.as_string());
  }
  if (!view.is(Type::array) && !view.is(Type::object)) return;
  ASSERT_EQ(tape.count(at), view.size());
  Index child = at + 1;
  view.each_element([&](View element) {
    expect_same(tape, child, element);
    child = tape.next(child);
    return true;
  });
  view.each_member([&](std::string_view key, bool escaped, View value) {
    EXPECT_EQ(tape.inside(child), key);
    EXPECT_EQ(tape.special(child), escaped);
    expect_same(tape, child + 1, value);
    child = tape.next(child + 1);
    return true;
  });
  ASSERT_EQ(child, tape.next(at));
}

TEST(Tape, SaysTheSameAsTheText) {
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

TEST(Tape, PointsAtValuesAndKeys) {
  Tape tape;
  ASSERT_EQ(tape.read(R"({"a":[1,{"b/c~":[2]}],"\u0064":3})", {}), Tape::Problem::none);
  std::vector<std::string> pointers;
  std::string keys;
  for (Index at = 0; at < tape.size(); ++at) {
    pointers.push_back(tape.pointer(at));
    keys += tape.is_key(at) ? 'k' : '.';
  }
  EXPECT_EQ(pointers, (std::vector<std::string>{"", "/a", "/a", "/a/0", "/a/1", "/a/1/b~1c~0", "/a/1/b~1c~0",
                                                "/a/1/b~1c~0/0", "/d", "/d"}));
  EXPECT_EQ(keys, ".k...k..k.");
}

TEST(Tape, FindsTheLastMemberOfAName) {
  Tape tape;
  ASSERT_EQ(tape.read(R"({"a":1,"b":2,"\u0061":3})", {}), Tape::Problem::none);
  EXPECT_EQ(tape.text(tape.member(0, "a")), "3");
  EXPECT_EQ(tape.text(tape.member(0, "b")), "2");
  EXPECT_EQ(tape.member(0, "c"), kNowhere);
}

TEST(Tape, StopsAtItsBounds) {
  Tape tape;
  EXPECT_EQ(tape.read("[[[]]]", {.max_depth = 3}), Tape::Problem::none);
  EXPECT_EQ(tape.read("[[[]]]", {.max_depth = 2}), Tape::Problem::too_deep);
  EXPECT_EQ(tape.read("[1,2,3]", {.max_values = 4}), Tape::Problem::none);
  EXPECT_EQ(tape.read("[1,2,3]", {.max_values = 3}), Tape::Problem::too_many);
}

// Not a validator, but never further than the text, and never silent about its structure.
TEST(Tape, NoticesBrokenStructure) {
  const std::string_view text = R"({"a":["\u0041\n",-1.5e3,true],"b":{"c":null}})";
  for (std::size_t size = 0; size < text.size(); ++size) {
    const std::string cut(text.substr(0, size));  // of its own, so that a sanitizer sees a read past it
    Tape tape;
    EXPECT_EQ(tape.read(cut, {}), Tape::Problem::not_json) << cut;
  }
  for (std::size_t size = 0; size < 200; ++size) {  // the end in every place of a window of 64 bytes
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
