#include "json/jsonc.hpp"

#include <gtest/gtest.h>

#include "fairlead/json/view.hpp"

namespace fairlead::json {
namespace {

TEST(Jsonc, CommentsAndTrailingCommasBecomeSpacesAndOffsetsStay) {
  const std::string text = "\xEF\xBB\xBF// a\n{\"a\": /* , \"}\n */ [1, 2,], // x\n \"u\": \"http://x\", }\n";
  const std::string blank = blank_comments(text);
  ASSERT_EQ(blank.size(), text.size());
  EXPECT_EQ(blank,
            "   " + std::string("    \n{\"a\":        \n    [1, 2 ],     \n \"u\": \"http://x\"  }\n"));
  const Result<std::string> strict = strict_json(text, 10);
  ASSERT_TRUE(strict);
  const std::string_view value = View(*strict)["u"].text();
  EXPECT_EQ(text.substr(static_cast<std::size_t>(value.data() - strict->data()), value.size()),
            "\"http://x\"");
}

TEST(Jsonc, WhatIsInStringsIsNoComment) {
  const std::string text = R"({"a":"/* no */","b":"\"// no","c":",}"})";
  EXPECT_EQ(blank_comments(text), text);
}

TEST(Jsonc, ErrorsNameTheLine) {
  EXPECT_TRUE(strict_json("{\n\"a\": 1\n\"b\": 2}", 10).error().message().starts_with("line 3: "));
  EXPECT_TRUE(strict_json("{\n/* never closed", 10).error().message().starts_with("line 2: "));
  EXPECT_FALSE(strict_json("[[[1]]]", 2));
  EXPECT_TRUE(strict_json("[[1]]", 2));
  EXPECT_FALSE(strict_json("", 2));
  EXPECT_FALSE(strict_json("// only a comment", 2));
  EXPECT_FALSE(strict_json("{\"a\":\"\xff\"}", 2));
}

}  // namespace
}  // namespace fairlead::json
