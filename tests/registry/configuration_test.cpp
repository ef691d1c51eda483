#include "registry/configuration.hpp"

#include <gtest/gtest.h>

#include "fairlead/pool/pool.hpp"
#include "registry/codes.hpp"

namespace fairlead::registry {
namespace {

using std::chrono::milliseconds;

std::string problem_with(std::string_view key, std::string_view value) {
  const Result<ConfigurationPtr> changed = Configuration::defaults()->with(key, json::View(value));
  if (changed) return "no error";
  return changed.error().detail().failure_code + " " + changed.error().detail().pointer + " " +
         changed.error().message();
}

TEST(ConfigurationTest, EveryDefinitionIsCompleteAndItsDefaultIsValid) {
  std::string_view last;
  for (const Definition& definition : definitions()) {
    EXPECT_LT(last, definition.full_key);
    last = definition.full_key;
    EXPECT_FALSE(definition.category().empty());
    EXPECT_FALSE(definition.key().empty());
    EXPECT_TRUE(definition.description.ends_with('.')) << definition.full_key;
    const Result<json::Raw> valid = validate(definition, json::View(definition.default_json));
    ASSERT_TRUE(valid) << valid.error().message();
    EXPECT_EQ(valid->text(), definition.default_json) << definition.full_key;
    EXPECT_EQ(find_definition(definition.full_key), &definition);
  }
}

TEST(ConfigurationTest, DefaultsAreThoseOfThePool) {
  const ConfigurationPtr defaults = Configuration::defaults();
  EXPECT_EQ(defaults->integer("mcp.max_stdio_processes"), 50);
  EXPECT_EQ(defaults->integer("mcp.max_calls"), static_cast<std::int64_t>(pool::PoolLimits().max_calls));
  EXPECT_EQ(defaults->duration("mcp.evict_after"), pool::PoolLimits().evict_after);
  EXPECT_EQ(defaults->duration("mcp.list_wait"), milliseconds(10'000));
  EXPECT_EQ(defaults->string("auth.mode"), "auto");
  EXPECT_FALSE(defaults->boolean("registry.allow_private_addresses"));
}

TEST(ConfigurationTest, ClocksThatAServerDoesNotSetHaveTheValuesOfTheSettings) {
  const ConfigurationPtr defaults = Configuration::defaults();
  EXPECT_EQ(with_clock_defaults(pool::Clocks(), *defaults), pool::Clocks());
  const ConfigurationPtr changed =
      defaults->with("mcp.clocks.idle", json::View(std::string_view("\"90s\""))).value();
  pool::Clocks expected;
  expected.idle = milliseconds(90'000);
  EXPECT_EQ(with_clock_defaults(pool::Clocks(), *changed), expected);
  pool::Clocks own;
  own.idle = milliseconds(5'000);
  EXPECT_EQ(with_clock_defaults(own, *changed), own);
  EXPECT_TRUE(problem_with("mcp.clocks.idle", "0").starts_with("invalid_row"));
}

TEST(ConfigurationTest, ChangedValueIsInTheNewSnapshotOnly) {
  const ConfigurationPtr before = Configuration::defaults();
  const ConfigurationPtr after =
      before->with("mcp.max_stdio_processes", json::View(std::string_view("7"))).value();
  EXPECT_EQ(before->integer("mcp.max_stdio_processes"), 50);
  EXPECT_EQ(after->integer("mcp.max_stdio_processes"), 7);
  EXPECT_FALSE(after->is_default("mcp.max_stdio_processes"));
  EXPECT_EQ(after->changed_values().size(), 1U);
  const ConfigurationPtr reset = after->with("mcp.max_stdio_processes", json::View()).value();
  EXPECT_TRUE(reset->is_default("mcp.max_stdio_processes"));
  EXPECT_EQ(reset->integer("mcp.max_stdio_processes"), 50);
}

TEST(ConfigurationTest, DurationsAreStoredAsText) {
  for (const char* value : {"90", "\"90s\"", "\"1.5m\"", "90.0"}) {
    const Result<ConfigurationPtr> changed =
        Configuration::defaults()->with("mcp.list_wait", json::View(std::string_view(value)));
    ASSERT_TRUE(changed) << value;
    EXPECT_EQ((*changed)->value("mcp.list_wait").text(), "\"90s\"");
    EXPECT_EQ((*changed)->duration("mcp.list_wait"), milliseconds(90'000));
  }
}

TEST(ConfigurationTest, ErrorHasTheLimits) {
  EXPECT_EQ(problem_with("mcp.max_stdio_processes", "0"),
            "invalid_row /value `mcp.max_stdio_processes` must be 1 to 10000, a whole number");
  EXPECT_EQ(problem_with("mcp.list_wait", "\"2h\""),
            "invalid_row /value `mcp.list_wait` must be 0s to 1h, such as \"250ms\", \"30s\" or \"10m\"");
  EXPECT_EQ(problem_with("auth.mode", "\"open\""),
            "invalid_row /value `auth.mode` must be one of auto, none, token");
  EXPECT_EQ(problem_with("mcp.max_stdio_proceses", "1"),
            "not_found  there is no configuration key `mcp.max_stdio_proceses` (did you mean "
            "`mcp.max_stdio_processes`?)");
  for (const char* bad : {"\"50\"", "1.5", "-1", "1e300", "null", "true", "[]", "{}", "99999999999999999999"})
    EXPECT_TRUE(problem_with("mcp.max_stdio_processes", bad).starts_with("invalid_row")) << bad;
  for (const char* bad : {"\"x\"", "null", "-1", "1e300", "[]", "\"\""})
    EXPECT_TRUE(problem_with("mcp.list_wait", bad).starts_with("invalid_row")) << bad;
  for (const char* bad : {"0", "\"true\"", "null"})
    EXPECT_TRUE(problem_with("registry.allow_private_addresses", bad).starts_with("invalid_row")) << bad;
}

TEST(ConfigurationTest, StringsAndListsAreChecked) {
  Definition text;
  text.full_key = "a.b";
  text.type = ValueType::string;
  text.minimum = 1;
  text.maximum = 3;
  EXPECT_TRUE(validate(text, json::View(std::string_view("\"abc\""))));
  for (const char* bad : {"\"\"", "\"abcd\"", "1", "\"\\u0000\""})
    EXPECT_FALSE(validate(text, json::View(std::string_view(bad)))) << bad;
  text.type = ValueType::string_list;
  EXPECT_TRUE(validate(text, json::View(std::string_view(R"(["a","b","c"])"))));
  for (const char* bad : {"[]", R"(["a","b","c","d"])", "[1]", "\"a\""})
    EXPECT_FALSE(validate(text, json::View(std::string_view(bad)))) << bad;
}

TEST(ConfigurationTest, JsonFormHasValueDefaultAndLimits) {
  const ConfigurationPtr changed =
      Configuration::defaults()->with("mcp.evict_after", json::View(std::string_view("2"))).value();
  const json::Raw json = changed->to_json(*find_definition("mcp.evict_after"));
  const json::View view(json);
  EXPECT_EQ(view["value"].text(), "\"2s\"");
  EXPECT_EQ(view["default"].text(), "\"1s\"");
  EXPECT_EQ(view["maximum"].text(), "\"1h\"");
  EXPECT_EQ(view["isDefault"].text(), "false");
  EXPECT_EQ(view["applies"].text(), "\"at once\"");
  const json::Raw choice = changed->to_json(*find_definition("auth.mode"));
  EXPECT_EQ(json::View(choice)["choices"].text(), R"(["auto","none","token"])");
}

}  // namespace
}  // namespace fairlead::registry
