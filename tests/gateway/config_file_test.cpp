// Config files: the place of a mistake, warnings about the files of clients, and envFile (R9.4).
#include <gtest/gtest.h>

#include <fstream>

#include "fairlead/gateway/config.hpp"
#include "support/support.hpp"

namespace fairlead::gateway {
namespace {

std::string file_problem(std::string_view text) {
  const Result<Config> config = parse_config(text, "f");
  return config ? "" : config.error().message();
}

TEST(GatewayConfigFileTest, ErrorsHaveLineColumnAndKey) {
  for (const auto& [text, location] : std::initializer_list<std::pair<const char*, const char*>>{
           {"[servers.a]\ncommand = 'x'\n  comand = 'y'", "f:3:3: unknown key `comand` in [servers.a]"},
           {"listen = 'x'\n[servers.a]\nargs = []", "f:2:10: `servers.a` needs a `command`"},
           {"[servers.a]\ncommand='x'\nclocks = { ping = '1s', idle = 'soon' }",
            "f:3:25: `servers.a.clocks.idle` is not a duration"},
           {"[servers.a]\ncommand='x'\nargs = ['a',\n 5]", "f:4:2: `servers.a.args` is not a list"},
           {"# ü\nlisten = 5", "f:2:1: `listen` is not a string"},
           {"{\"mcpServers\": {\n // comment\n \"a\": {\"command\": 5}}}",
            "f:3:8: `mcpServers.a.command`"}}) {
    EXPECT_EQ(file_problem(text).substr(0, std::string_view(location).size()), location);
  }
  // Syntax: the parser has the position, and the key is the last one before it.
  const std::string problem = file_problem("[servers.a]\n# b = 1\ncommand = 'x\nargs = []\n");
  EXPECT_EQ(problem.substr(0, 4), "f:3:");
  EXPECT_NE(problem.find("(key `command` in [servers.a])"), std::string::npos) << problem;
  EXPECT_NE(file_problem("listen =").find("(key `listen`)"), std::string::npos);
}

TEST(GatewayConfigFileTest, MisspeltKeysOfClientFilesAreWarnedAbout) {
  const Result<Config> config = parse_config(
      "{\"theme\": 1, \"mcpServers\": {\n"
      "  \"a\": {\"command\": \"x\", \"agrs\": [],\n"
      "    \"timeout\": 5, \"autoApprove\": [], \"_note\": \"\", \"frobnicate\": 1},\n"
      "  \"b\": {\"disabled\": true, \"agrs\": []},\n"
      "  \"c\": {\"enabled\": false}}}",
      "f");
  ASSERT_TRUE(config) << config.error().to_string();
  EXPECT_EQ(config->servers.size(), 1U);
  EXPECT_EQ(config->warnings,
            (std::vector<std::string>{"f:2:25: unknown key `agrs` in [mcpServers.a] (did you mean `args`?)",
                                      "f:3:51: unknown key `frobnicate` in [mcpServers.a]"}));
  EXPECT_EQ(
      file_problem(R"({"mcpServers":{"a":{"comand":"x"}}})"),
      "f:1:16: `mcpServers.a` needs a `command` or a `url`: unknown key `comand` in [mcpServers.a] (did you "
      "mean `command`?)");
  EXPECT_EQ(file_problem(R"({"mcpServer":{}})"), "f: the file has no `mcpServers` (`mcpServer` is misspelt)");
}

TEST(GatewayConfigFileTest, EnvFileOfClientFileIsRead) {
  const test::TempDir directory;
  std::ofstream(directory / ".env") << "# comment\nexport TOKEN='a$b'\nMODE=file\nPLAIN=${HOME}\n";
  std::ofstream(directory / "large.env") << std::string((256u << 10) + 1, '#');
  const auto config_of = [&](const std::string& text) {
    std::ofstream(directory / "mcp.json") << text;
    return load_config(directory / "mcp.json");
  };
  for (const std::string key : {"mcpServers", "servers"}) {
    const Result<Config> config =
        config_of("{\"" + key + R"(":{"a":{"command":"x","env":{"MODE":"entry"},"envFile":".env"}}})");
    ASSERT_TRUE(config) << config.error().to_string();
    const auto& program = std::get<pool::Program>(config->servers[0].transport);
    const std::map<std::string, std::string> expected = {
        {"TOKEN", "a$b"}, {"MODE", "file"}, {"PLAIN", "${HOME}"}};
    EXPECT_EQ(program.file_env, expected);
    EXPECT_EQ(program.env.at("MODE"), "entry");
  }
  EXPECT_TRUE(config_of(R"({"mcpServers":{"a":{"command":"x","envFile":"${workspaceFolder}/.env"}}})"));
  for (const auto& [file, problem] : std::initializer_list<std::pair<const char*, const char*>>{
           {"missing", "cannot be read: "},
           {"large.env", "max_env_file_bytes (262144)"},
           {"${input:x}", "has a variable other than"}}) {
    const Result<Config> config =
        config_of("{\"mcpServers\":{\"a\":{\"command\":\"x\",\"envFile\":\"" + std::string(file) + "\"}}}");
    ASSERT_FALSE(config) << file;
    EXPECT_NE(config.error().message().find("`mcpServers.a.envFile`"), std::string::npos) << file;
    EXPECT_NE(config.error().message().find(problem), std::string::npos) << config.error().message();
  }
  EXPECT_NE(file_problem("[servers.a]\ncommand='x'\nenvFile='.env'").find("unknown key `envFile`"),
            std::string::npos);
}

}  // namespace
}  // namespace fairlead::gateway
