// Validation of extension identifiers and settings.
#include "fairlead/protocol/extension.hpp"

#include <gtest/gtest.h>

namespace fairlead::mcp {
namespace {

TEST(ExtensionTest, IdentifierWithoutPrefixIsInvalid) {
  for (const char* good : {"io.modelcontextprotocol/tasks", "com.example/a_b-c.d", "a/", "a1.b-c/x", "X/9"})
    EXPECT_TRUE(is_extension_id(good)) << good;
  for (const char* bad : {"", "tasks", "/tasks", "1a/x", "a-/x", ".a/x", "a./x", "a..b/x", "a b/x", "a/x/y",
                          "a/-x", "a/x-", "a/x y", "a/\xc3\xa9"})
    EXPECT_FALSE(is_extension_id(bad)) << bad;
}

TEST(ExtensionTest, NonObjectSettingsAreInvalid) {
  Extensions extensions;
  extensions["com.example/a"] = json::Raw();
  extensions["com.example/b"] = *json::Raw::parse(R"({"n":1})");
  EXPECT_EQ(extensions_problem(extensions), "");
  json::Writer out;
  out.begin_object();
  write_extensions(out, extensions);
  out.end_object();
  EXPECT_EQ(out.text(), R"({"extensions":{"com.example/a":{},"com.example/b":{"n":1}}})");
  extensions["com.example/b"] = *json::Raw::parse("[]");
  EXPECT_NE(extensions_problem(extensions).find("com.example/b"), std::string::npos);
}

}  // namespace
}  // namespace fairlead::mcp
