#include "json/yaml.hpp"

#include <gtest/gtest.h>

namespace fairlead::json {
namespace {

// Returns the JSON of a text with aliases of up to `max` bytes, or the message of the error.
std::string with_aliases(const std::string& text, std::size_t max = 1000) {
  YamlOptions options;
  options.max_alias_bytes = max;
  const Result<Raw> json = yaml_to_json(text, options);
  return json ? std::string(json->text()) : json.error().message();
}

TEST(Yaml, AliasesAreReplacedByTheirNodesIfAllowed) {
  EXPECT_EQ(with_aliases("a: &x {b: [1, 2]}\nc: *x\nd: &y text\ne: [*y, *x]"),
            R"({"a":{"b":[1,2]},"c":{"b":[1,2]},"d":"text","e":["text",{"b":[1,2]}]})");
  EXPECT_EQ(with_aliases("a: &x {b: &y [1]}\nc: *y"), R"({"a":{"b":[1]},"c":[1]})");
  EXPECT_EQ(with_aliases("a: *x"), "line 1: the alias `x` has no anchor before it");
  EXPECT_EQ(with_aliases("a: &x [*x]"), "line 1: the alias `x` has no anchor before it");
  EXPECT_EQ(with_aliases("&x a: 1"), "line 1: anchors of keys are not supported");
  EXPECT_EQ(with_aliases("a: &x 1", 0), "line 1: anchors are not supported");
}

TEST(Yaml, MergedMappingsAddTheMembersThatAreMissing) {
  EXPECT_EQ(with_aliases("a: &x {k: 1, l: 2}\nb:\n  <<: *x\n  l: 3"),
            R"({"a":{"k":1,"l":2},"b":{"l":3,"k":1}})");
  EXPECT_EQ(with_aliases("a: &x {k: 1}\nc: &y {k: 2, m: 4}\nb: {<<: [*x, *y]}"),
            R"({"a":{"k":1},"c":{"k":2,"m":4},"b":{"k":1,"m":4}})");
  EXPECT_EQ(with_aliases("a: {<<: 1}"), R"({"a":{}})");
}

TEST(Yaml, AliasesThatExpandToTooMuchAreRejected) {
  std::string bomb = "a0: &a0 [lol, lol, lol]\n";
  for (int i = 1; i < 30; ++i) {
    const std::string inner = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + inner + ", " + inner + "]\n";
  }
  EXPECT_TRUE(with_aliases(bomb, 1 << 20).ends_with("aliases expand to more than max_alias_bytes (1048576)"));
  std::string deep = "a0: &a0 [1]\n";
  for (int i = 1; i < 40; ++i)
    deep += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) + "]\n";
  EXPECT_EQ(with_aliases(deep, 1 << 20), "aliases nest it more than 32 deep");
}

}  // namespace
}  // namespace fairlead::json
