// Config files: accepted keys and values, and error messages that name the invalid ones (R9.4).
#include "fairlead/gateway/config.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <regex>

#include "fairlead/process/failure.hpp"
#include "support/support.hpp"
#include "support/turns.hpp"

namespace fairlead::gateway {
namespace {

std::string located_problem_of(std::string_view text) {
  const Result<Config> config = parse_config(text, "f");
  return config ? "" : config.error().message();
}

// Returns the problem with the line and column only if it is about syntax: "f:3:5: …" becomes "f: …"
// otherwise.
std::string problem_of(std::string_view text) {
  return std::regex_replace(located_problem_of(text), std::regex("^f:[0-9]+:[0-9]+: "), "f: ");
}

TEST(GatewayConfigTest, ClientBufferLimitsAreRead) {
  const Result<Config> config =
      parse_config("[limits]\nmax_client_buffer_bytes = \"2M\"\nmax_buffer_bytes = \"8M\"\n", "x.toml");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->buffers.max_client_buffer_bytes, 2u << 20);
  EXPECT_EQ(config->buffers.max_buffer_bytes, 8u << 20);
  EXPECT_FALSE(parse_config("[limits]\nmax_buffer_bytes = 0\n", "x.toml"));
}

TEST(GatewayConfigTest, FailureDetailsAcceptsThreeValues) {
  EXPECT_EQ(parse_config("", "f")->failure_details, FailureDetails::automatic);
  EXPECT_EQ(parse_config("failure_details='auto'", "f")->failure_details, FailureDetails::automatic);
  EXPECT_EQ(parse_config("failure_details='everyone'", "f")->failure_details, FailureDetails::everyone);
  EXPECT_EQ(parse_config("failure_details='administrators'", "f")->failure_details,
            FailureDetails::administrators);
  EXPECT_NE(problem_of("failure_details='nobody'").find("is none of auto, everyone, administrators"),
            std::string::npos)
      << problem_of("failure_details='nobody'");
}

TEST(GatewayConfigTest, TomlWithAllKindsOfKeysIsRead) {
  const Result<Config> config = parse_config(R"(
listen = "127.0.0.1:9000"
list_wait = "2s"
list_retry = "3s"
socket_mode = "0660"
[limits]
max_noise_frames = 0
max_stdio_processes = 7
max_frame_bytes = "64M"
max_body_bytes = 100
[servers.files]
command = "npx"
args = ["-y", "server"]
env = { PLAIN = "x", TOKEN = "${SECRET}" }
cwd = "/srv"
sharing = "per_session"
revision = "2025-06-18"
keep_running = true
[servers.files.clocks]
idle = "90s"
handshake = 5
[servers.files.containment]
memory_max = "512M"
no_new_privs = "required"
landlock = "best_effort"
read = ["/srv"]
[servers.web]
url = "https://example.org/mcp"
[servers.off]
command = "x"
enabled = false
)",
                                             "f");
  ASSERT_TRUE(config) << config.error().to_string();
  EXPECT_EQ(config->listen, "127.0.0.1:9000");
  EXPECT_EQ(config->list_wait, std::chrono::seconds(2));
  EXPECT_EQ(config->list_retry, std::chrono::seconds(3));
  EXPECT_EQ(config->limits.max_stdio_processes, 7U);
  EXPECT_EQ(config->max_frame_bytes, 64U << 20);
  EXPECT_EQ(config->max_body_bytes, 100U);
  EXPECT_EQ(config->max_noise_frames, 0U);
  EXPECT_EQ(config->socket_mode, 0660U);
  ASSERT_EQ(config->servers.size(), 2U);
  const pool::ServerSpec& files = config->servers[0];
  const auto& process = std::get<pool::Program>(files.transport);
  EXPECT_EQ(process.command, "npx");
  EXPECT_EQ(process.args, std::vector<std::string>({"-y", "server"}));
  EXPECT_EQ(process.env.at("PLAIN"), "x");
  EXPECT_EQ(process.env.at("TOKEN"), "${SECRET}");
  EXPECT_EQ(process.containment.memory_max, 512U << 20);
  EXPECT_EQ(process.containment.no_new_privs, Requirement::required);
  EXPECT_EQ(files.sharing, pool::Sharing::per_session);
  EXPECT_EQ(files.pinned_revision, mcp::Revision::r2025_06_18);
  EXPECT_EQ(files.clocks.idle, std::chrono::seconds(90));
  EXPECT_EQ(files.clocks.handshake, std::chrono::seconds(5));
  EXPECT_TRUE(files.keep_running);
  EXPECT_EQ(config->servers[1].name, "web");
}

TEST(GatewayConfigTest, DesktopClientJsonIsReadAndUnknownKeysAreIgnored) {
  const Result<Config> config = parse_config(
      R"({"theme":"dark","mcpServers":{"My files!":{"command":"npx","args":["x"],"autoApprove":[]},"b":{"url":"http://h/","type":"http"},"c":{"command":"c","disabled":true}}})",
      "f");
  ASSERT_TRUE(config) << config.error().to_string();
  ASSERT_EQ(config->servers.size(), 2U);
  EXPECT_EQ(config->servers[0].name, "My-files");
  EXPECT_EQ(config->servers[1].name, "b");
}

TEST(GatewayConfigTest, InvalidKeysAndValuesAreNamed) {
  EXPECT_EQ(problem_of("servers.a.comand = 'x'\nservers.a.command = 'y'"),
            "f: unknown key `comand` in [servers.a] (did you mean `command`?)");
  EXPECT_EQ(problem_of("[servers.a]"), "f: `servers.a` needs a `command` or a `url`");
  EXPECT_EQ(problem_of("[servers.a]\ncommand='x'\nurl='http://h'"),
            "f: `servers.a` has more than one of `command`, `url` and `connector`");
  EXPECT_EQ(problem_of("[servers.a]\ncommand='x'\nrevision='2025-01-01'"),
            "f: `servers.a.revision` is none of 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28");
  EXPECT_EQ(problem_of("listen = 5"), "f: `listen` is not a string");
  EXPECT_EQ(problem_of("[servers.a]\ncommand='x'\nargs='y'"), "f: `servers.a.args` is not a list of strings");
  EXPECT_EQ(problem_of("[servers.a]\ncommand='x'\nsharing='all'"),
            "f: `servers.a.sharing` is none of automatic, shared, per_session, per_user");
  EXPECT_EQ(problem_of("[servers.a]\ncommand='x'\nclocks.idle='soon'"),
            "f: `servers.a.clocks.idle` is not a duration such as 250ms, 30s, 10m or 1h");
  EXPECT_EQ(problem_of("[limits]\nmax_calls=-1"), "f: `limits.max_calls` is not a whole number of 0 or more");
  EXPECT_EQ(problem_of("[limits]\nmax_calls=1.5"),
            "f: `limits.max_calls` is not a whole number of 0 or more");
  EXPECT_EQ(problem_of("[limits]\nmax_calls=1e300"),
            "f: `limits.max_calls` is not a whole number of 0 or more");
  EXPECT_EQ(problem_of("[servers.a]\ncommand='x'\nrestart.crash_loop_after=1e12"),
            "f: `servers.a.restart.crash_loop_after` is not a whole number of 0 or more");
  EXPECT_EQ(problem_of("[servers.a]\ncomand='x'"),
            "f: unknown key `comand` in [servers.a] (did you mean `command`?)");
  EXPECT_EQ(problem_of("[servers.a]\ncommand='x'\nenv={A=['x']}"), "f: `servers.a.env.A` is not a string");
  EXPECT_EQ(problem_of("tls_key = 'k'"), "f: `tls_key` needs a `tls_certificate`");
  EXPECT_EQ(problem_of("tls_certificate = 'c'"), "f: `tls_certificate` needs a `tls_key`");
  EXPECT_EQ(problem_of("[servers.a__b]\ncommand='x'").substr(0, 37), "f: `servers.a__b` cannot be used: ser");
  EXPECT_EQ(located_problem_of("listen = \n").substr(0, 4), "f:1:");
  EXPECT_NE(problem_of("{\"mcpServers\":"), "");
  EXPECT_NE(problem_of(R"({"mcpServers":{"a b":{"command":"x"},"a-b":{"command":"x"}}})")
                .find("which is the name of another server"),
            std::string::npos);
}

TEST(GatewayConfigTest, UnusableNumbersAreRejected) {
  const std::string server = "[servers.a]\ncommand='x'\n";
  for (const std::string key : {"max_stdio_processes", "max_calls", "max_frame_bytes", "max_body_bytes"})
    EXPECT_EQ(problem_of("[limits]\n" + key + "=0"), "f: `limits." + key + "` must be more than 0");
  for (const std::string key : {"spawn", "handshake", "idle", "absolute", "ping"})
    EXPECT_EQ(problem_of(server + "clocks." + key + "='0s'"),
              "f: `servers.a.clocks." + key + "` must be more than 0");
  EXPECT_EQ(problem_of(server + "clocks.idle=0"), "f: `servers.a.clocks.idle` must be more than 0");
  EXPECT_EQ(problem_of(server + "clocks.health=0\nclocks.idle_stop='0'\nclocks.queue=0"), "");
  EXPECT_EQ(problem_of(server + "max_calls=0"), "f: `servers.a.max_calls` must be more than 0");
  EXPECT_EQ(problem_of("limits.max_concurrent_starts=0"),
            "f: `limits.max_concurrent_starts` must be more than 0");
  EXPECT_EQ(parse_config("limits.max_concurrent_starts=3", "f")->limits.max_concurrent_starts, 3u);
  EXPECT_GE(Config().limits.max_concurrent_starts, 4u);
  EXPECT_EQ(problem_of(server + "restart.crash_loop_after=0"),
            "f: `servers.a.restart.crash_loop_after` must be more than 0");
  EXPECT_EQ(problem_of(server + "restart.factor=0.5"), "f: `servers.a.restart.factor` is less than 1");
  EXPECT_EQ(problem_of(server + "restart.jitter=1.5"), "f: `servers.a.restart.jitter` is more than 1");
  EXPECT_EQ(problem_of(server + "containment.memory_max='999999999T'"),
            "f: `servers.a.containment.memory_max` is too large");
}

TEST(GatewayConfigTest, KeysWithoutEffectAreRejected) {
  const std::string program = "[servers.a]\ncommand='x'\n";
  const std::string address = "[servers.a]\nurl='http://h'\n";
  EXPECT_EQ(problem_of(program + "containment.read=['/srv']"),
            "f: `servers.a.containment.read` needs `landlock` to be best_effort or required");
  EXPECT_EQ(problem_of(program + "containment.memory_max='1G'\ncontainment.cgroup='off'"),
            "f: `servers.a.containment.memory_max` needs a `cgroup` that is not off");
  EXPECT_EQ(problem_of(address + "containment.landlock='required'"),
            "f: `servers.a.containment` is allowed only for a server with a `command`");
  EXPECT_EQ(problem_of(address + "env={A='1'}"),
            "f: `servers.a.env` is allowed only for a server with a `command`");
  EXPECT_EQ(problem_of(program + "headers={A='1'}"),
            "f: `servers.a.headers` is allowed only for a server with a `url`");
}

TEST(GatewayConfigTest, InvalidUrlIsRejected) {
  EXPECT_EQ(problem_of("[servers.a]\nurl='htp://h'").substr(0, 40),
            "f: `servers.a.url` cannot be used: `htp:");
  EXPECT_EQ(problem_of("[servers.a]\nurl='http://'"),
            "f: `servers.a.url` cannot be used: `http://` is not a URL: the host is missing");
}

TEST(GatewayConfigTest, JsonErrorsHaveLineNumber) {
  EXPECT_EQ(located_problem_of("{\r\n\"mcpServers\": {\r\n  \"a\": x\r\n}}"),
            "f:3:8: unexpected character 'x' at byte 27");
  EXPECT_EQ(located_problem_of("{ /* what\nis\nthis */ ?"), "f:3:9: unexpected character '?' at byte 21");
  EXPECT_EQ(problem_of(R"({"theme":"dark"})"), "f: the file has no `mcpServers`");
}

TEST(GatewayConfigTest, JsonWithCommentsAndTrailingCommasIsRead) {
  const Result<Config> config = parse_config(
      "\xEF\xBB\xBF"
      R"(// my servers
{
  "mcpServers": {
    /* "old": {}, */
    "a": { "command": "//x", "args": ["/*", "\",]",], "env": {"PORT": 8080, "ON": true, "GONE": null}, "cwd": null, },
    "b": { "type": "http", "serverUrl": "https://h/mcp" }, // that one
  },
}
)",
      "f");
  ASSERT_TRUE(config) << config.error().to_string();
  ASSERT_EQ(config->servers.size(), 2U);
  const auto& process = std::get<pool::Program>(config->servers[0].transport);
  EXPECT_EQ(process.command, "//x");
  EXPECT_EQ(process.args, std::vector<std::string>({"/*", "\",]"}));
  EXPECT_EQ(process.env, (std::map<std::string, std::string>{{"ON", "true"}, {"PORT", "8080"}}));
  EXPECT_FALSE(parse_config(R"({"mcpServers":{}} /* open)", "f"));
}

TEST(GatewayConfigTest, EditorJsonWithServersKeyIsRead) {
  const Result<Config> config = parse_config(
      R"({"inputs":[],"servers":{"a":{"type":"stdio","command":"x"},"b":{"type":"sse","url":"http://h/sse"}}})",
      "f");
  ASSERT_TRUE(config) << config.error().to_string();
  EXPECT_EQ(config->servers.size(), 2U);
}

TEST(GatewayConfigTest, DisabledServersMayBeIncomplete) {
  ::unsetenv("FAIRLEAD_TEST_UNSET");
  const Result<Config> desktop = parse_config(
      R"({"mcpServers":{"a":{"disabled":true,"url":"http://h","headers":{"A":"${FAIRLEAD_TEST_UNSET}"}},"b":{"disabled":true}}})",
      "f");
  ASSERT_TRUE(desktop) << desktop.error().to_string();
  EXPECT_TRUE(desktop->servers.empty());
  EXPECT_EQ(problem_of("[servers.a]\nenabled=false\nurl='http://h'\nheaders={A='${FAIRLEAD_TEST_UNSET}'}"),
            "");
}

TEST(GatewayConfigTest, DesktopClientNamesAreSanitized) {
  const Result<Config> config = parse_config(
      R"({"mcpServers":{"日本":{"command":"x"},"@a/b.c":{"command":"x"},"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa_b":{"command":"x"}}})",
      "f");
  ASSERT_TRUE(config) << config.error().to_string();
  EXPECT_EQ(config->servers[0].name, "server");
  EXPECT_EQ(config->servers[1].name, "a-b-c");
  EXPECT_EQ(config->servers[2].name, std::string(31, 'a'));
}

// Returns the error of connecting to server `a` of a file.
Error connection_error(const std::string& text) {
  const Result<Config> config = parse_config(text, "f");
  EXPECT_TRUE(config) << config.error().to_string();
  Loop loop;
  const std::shared_ptr<pool::Pool> pool = pool::Pool::create(loop);
  EXPECT_TRUE(pool->add(config->servers.at(0)));
  const auto started = loop.block_on(pool->warm(pool::Target("a")));
  EXPECT_FALSE(started);
  return started ? Error(ErrorKind::validation, "it is connected") : started.error();
}

TEST(GatewayConfigTest, UnresolvedReferenceFailsServerInsteadOfFile) {
  ::unsetenv("FAIRLEAD_TEST_UNSET");
  const std::pair<std::string, std::string> cases[] = {
      {"url='http://h'\nheaders={Authorization='Bearer ${FAIRLEAD_TEST_UNSET}'}",
       "server a: `headers.Authorization` cannot be resolved: the environment variable FAIRLEAD_TEST_UNSET "
       "is not set"},
      {"url='http://h/?key=${FAIRLEAD_TEST_UNSET}'",
       "server a: `url` cannot be resolved: the environment variable FAIRLEAD_TEST_UNSET is not set"},
      {"url='http://h'\nheaders={A='${file:/no/such/file}'}",
       "server a: `headers.A` cannot be resolved: the file /no/such/file cannot be read: No such file or "
       "directory"},
      {"command='true'\nargs=['x', '--key=${FAIRLEAD_TEST_UNSET}']",
       "server a: `args[1]` cannot be resolved: the environment variable FAIRLEAD_TEST_UNSET is not set"},
      {"command='true'\nenv={KEY='${env:FAIRLEAD_TEST_UNSET}'}",
       "server a: `env.KEY` cannot be resolved: the environment variable FAIRLEAD_TEST_UNSET is not set"},
      {"command='true'\nenv={KEY='${secret:github}'}",
       "server a: `env.KEY` cannot be resolved: no secret store is configured for ${secret:github}; use "
       "${env:NAME} or ${file:/path}"},
      {"command='true'\nargs=['${input:key}']",
       "server a: `args[0]` cannot be resolved: `${input:key` is not a reference: ${NAME}, ${NAME:-default}, "
       "${secret:NAME} or ${file:/path}; write $$ for a dollar"}};
  for (const auto& [keys, message] : cases) {
    const Error error = connection_error("[servers.a]\n" + keys);
    EXPECT_EQ(error.kind(), ErrorKind::connection_failed);
    EXPECT_EQ(error.message(), message);
    EXPECT_EQ(error.detail().failure_code, failure::secret_unavailable);
    EXPECT_EQ(error.detail().remedy, remedy_for(failure::secret_unavailable));
  }
}

TEST(GatewayConfigTest, ErrorOfInvalidUrlDoesNotContainResolvedValue) {
  ::setenv("FAIRLEAD_TEST_KEY", "hush \r\n hush", 1);
  const Error error = connection_error("[servers.a]\nurl='http://h/?key=${FAIRLEAD_TEST_KEY}'");
  EXPECT_EQ(error.to_string().find("hush"), std::string::npos) << error.to_string();
  ::unsetenv("FAIRLEAD_TEST_KEY");
}

TEST(GatewayConfigTest, PerUserIsRejectedWithoutAuthentication) {
  const std::string text = "[servers.a]\ncommand='x'\nsharing='per_user'";
  EXPECT_EQ(
      problem_of(text),
      "f: `servers.a.sharing` is per_user, but clients are not authenticated, so all of them would be one "
      "user; use per_session or shared");
  const Result<Config> config = parse_config(text, "f", true);
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_TRUE(config->authenticated);
  EXPECT_EQ(problem_of(text + "\nenabled=false"), "");
}

TEST(GatewayConfigTest, ServerSurvivesTomlRoundTrip) {
  pool::ServerSpec spec;
  spec.name = "files";
  pool::Program program;
  program.command = "npx";
  program.args = {"-y", "", "quote \" slash \\ line\nbreak \x7f \x01 ü ${KEY} $$", "'"};
  program.env = {{"A.B", "x"}, {"TOKEN", "${env:TOKEN}"}};
  program.containment.memory_max = 512u << 20;
  program.containment.landlock = Requirement::best_effort;
  program.containment.files.read = {"/srv"};
  spec.transport = program;
  spec.restart.factor = 2.5;
  spec.clocks.idle = std::chrono::milliseconds(1500);
  spec.keep_running = true;
  const Result<Config> program_read = parse_config(to_toml(spec), "f");
  ASSERT_TRUE(program_read) << program_read.error().message() << "\n" << to_toml(spec);
  EXPECT_EQ(program_read->servers, std::vector{spec}) << to_toml(spec);
  spec.transport = pool::Address{"https://h/mcp?k=${KEY}", {{"X-Key", "${file:/run/key}"}}};
  const Result<Config> address_read = parse_config(to_toml(spec), "f");
  ASSERT_TRUE(address_read) << address_read.error().message() << "\n" << to_toml(spec);
  EXPECT_EQ(address_read->servers, std::vector{spec}) << to_toml(spec);
}

TEST(GatewayConfigTest, ToolCrashKeysAreRead) {
  const Result<Config> config = parse_config(
      "[servers.a]\ncommand='x'\nrestart.tool_crash_after=7\nrestart.tool_crash_pause='5s'", "f");
  ASSERT_TRUE(config) << config.error().to_string();
  EXPECT_EQ(config->servers.at(0).restart.tool_crash_after, 7u);
  EXPECT_EQ(config->servers.at(0).restart.tool_crash_pause, std::chrono::seconds(5));
}

TEST(GatewayConfigTest, MalformedTomlThatViolatesParserAssertionIsRejected) {
  for (const char* text :
       {"[[[", "[[", "[.", "a = [[[", "= 1", "[a\n[[b]", "\"", "a = \"\\u", "[\xff", "\xcf\xba,\xcf\xba:"})
    EXPECT_NE(problem_of(text), "") << text;
}

// ---- limits ----------------------------------------------------------------------------------------------

std::string repeated(std::string_view piece, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += piece;
  return text;
}

TEST(GatewayConfigTest, NestingBeyondMaxConfigDepthIsRejectedWithLine) {
  const std::string problem = "nests deeper than max_config_depth (64)";
  const std::regex column_and_key("^(f:[0-9]+):[0-9]+(: [^(]*\\(64\\)).*$");
  const auto problem_at_line = [&](const std::string& text) {
    return std::regex_replace(located_problem_of(text).substr(0, 300), column_and_key, "$1$2");
  };
  for (const std::size_t levels : {65u, 3'000u, 100'000u}) {
    const std::string parts = repeated("a.", levels - 1);
    EXPECT_EQ(problem_at_line("[" + parts + "a]"), "f:1: " + problem);
    EXPECT_EQ(problem_at_line("x = 1\n" + parts + "a.b = 1"), "f:2: " + problem);
    EXPECT_EQ(problem_at_line("x = " + repeated("[", levels) + repeated("]", levels)), "f:1: " + problem);
    EXPECT_EQ(problem_at_line("x = " + repeated("{a=", levels) + "1" + repeated("}", levels)),
              "f:1: " + problem);
  }
  // Levels of a header, of dotted keys and of brackets add up.
  const std::string half = repeated("a.", 31) + "a";
  EXPECT_EQ(problem_at_line("[" + half + "]\n" + half + ".a = {}"), "f:2: " + problem);
  EXPECT_EQ(problem_at_line("x = {" + half + ".x = [{" + half + " = 1}]}"), "f:1: " + problem);
}

TEST(GatewayConfigTest, NestingOfMaxConfigDepthIsRead) {
  const std::string half = repeated("a.", 31) + "a";
  for (const std::string& text :
       {"[" + half + "." + half + "]\n", "a = " + repeated("[", 64) + repeated("]", 64),
        "[" + half + "]\n" + half + " = {}\n[a.b]\n" + half + " = 1"})
    EXPECT_EQ(problem_of(text), "f: unknown key `a`") << text;
}

TEST(GatewayConfigTest, StringsCommentsAndSiblingsDoNotCountAsNesting) {
  const std::string many = repeated("[.{", 100);
  for (const std::string& text :
       {"a = \"\\\"" + many + "\"", "a = '" + many + "'", "a = \"\"\"\n\"" + many + "\\\"\"\"\"\"",
        "a = '''\n'" + many + "'''''", "# " + many + "\na = 1 # " + many,
        "a = [\n" + repeated("1.5,\n", 100) + "]", "a = [" + repeated("[{b.c = 1.5}, 2.5], ", 100) + "]"})
    EXPECT_EQ(problem_of(text), "f: unknown key `a`") << text;
}

TEST(GatewayConfigTest, FileBeyondMaxConfigBytesIsRejected) {
  const std::string problem = "has more than max_config_bytes (1048576)";
  EXPECT_EQ(problem_of(std::string(1'048'576, '\n')), "");
  EXPECT_EQ(problem_of(std::string(1'048'577, '\n')), "f: " + problem);
  EXPECT_EQ(problem_of("{" + std::string(1'048'576, ' ')), "f: " + problem);
  const test::TempDir directory;
  std::ofstream(directory / "large") << std::string(1'048'577, '\n');
  const Result<Config> large = load_config(directory / "large");
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().message(), "cannot read `" + (directory / "large") + "`: it " + problem);
}

TEST(GatewayConfigTest, ListsAndMapsBeyondMaxConfigEntriesAreRejected) {
  const auto args = [](int count) {
    std::string text = "[servers.a]\ncommand = 'x'\nargs = [";
    for (int i = 0; i < count; ++i) text += "'',";
    return text + "]\n";
  };
  EXPECT_EQ(problem_of(args(10'000)), "");
  EXPECT_EQ(problem_of(args(10'001)), "f: `servers.a.args` has more than max_config_entries (10000) entries");
  std::string env = "[servers.a]\ncommand = 'x'\n[servers.a.env]\n";
  for (int i = 0; i < 10'001; ++i) env += "K" + std::to_string(i) + " = '1'\n";
  EXPECT_EQ(problem_of(env), "f: `servers.a.env` has more than max_config_entries (10000) entries");
}

TEST(GatewayConfigTest, ServerBeyondMaxReferencesIsRejected) {
  const auto server = [](int count) {
    std::string text = "[servers.a]\ncommand = 'x'\nenv = { K = '${A}' }\nargs = ['";
    for (int i = 1; i < count; ++i) text += "${A}";
    return text + "']\n";
  };
  EXPECT_EQ(problem_of(server(1000)), "");
  EXPECT_EQ(problem_of(server(1001)), "f: `servers.a` has more than max_references (1000) references");
}

TEST(GatewayConfigTest, LongKeysAreShortenedInMessages) {
  const std::string key(100'000, 'k');
  for (const std::string& text :
       {key + " = 1", "[servers." + key + "]\ncommand = 'x'",
        "[servers.a]\ncommand = 'x'\nenv." + key + " = {}", key + ".a = 1\n" + key + " = 2", key,
        "{\"mcpServers\":{\"" + key + "\":{\"args\":1}}}"}) {
    const std::string problem = problem_of(text);
    EXPECT_NE(problem, "");
    EXPECT_LT(problem.size(), 1'000u);
  }
  EXPECT_EQ(problem_of("\"" + std::string(99, 'k') + "\u00e9\" = 1"),
            "f: unknown key `" + std::string(99, 'k') + "...`");
}

// Each text is as large as a file may be.
TEST(GatewayConfigTest, LargestFilesDoNotBlockLoop) {
  constexpr std::size_t kLargest = test::kTurnFactor == 1 ? 1u << 20 : 64u << 10;
  const auto filled = [](const std::string& text, std::string_view piece) {
    return text + repeated(piece, (kLargest - text.size()) / piece.size());
  };
  Loop loop;
  for (const std::string& text :
       {filled("{", "/*"), filled("{\"", "\\\""), filled("", "\""), filled("", "'''"), filled("a=", "["),
        filled("[a", ".a"), filled("", "."), filled("{\"servers\":[", "1,")}) {
    std::string problem;
    loop.post([&] { problem = problem_of(text); });
    loop.run_until([&] { return !problem.empty(); });
  }
  test::expect_short_turns(loop);
}

TEST(GatewayConfigTest, DurationsAreParsed) {
  EXPECT_EQ(*parse_duration("250ms"), std::chrono::milliseconds(250));
  EXPECT_EQ(*parse_duration("1.5h"), std::chrono::minutes(90));
  EXPECT_EQ(*parse_duration("7"), std::chrono::seconds(7));
  for (const char* bad : {"", "s", "-1s", "1d", "1e30h", "nan"}) EXPECT_FALSE(parse_duration(bad)) << bad;
}

TEST(GatewayConfigTest, UnreadableFileIsNamed) {
  const Result<Config> config = load_config("/no/such/file");
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().message(), "cannot read `/no/such/file`: No such file or directory");
  const Result<Config> directory = load_config("/");
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error().message(), "cannot read `/`: it is a directory, not a regular file");
  const Result<Config> endless = load_config("/dev/zero");
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().message(), "cannot read `/dev/zero`: it is a device, not a regular file");
}

TEST(GatewayConfigTest, InvalidSocketModeIsRejected) {
  for (const std::string mode : {"rw", "0999", "7777", "06 0"}) {
    EXPECT_NE(problem_of("socket_mode = \"" + mode + "\"").find("socket_mode"), std::string::npos) << mode;
  }
}

}  // namespace
}  // namespace fairlead::gateway
