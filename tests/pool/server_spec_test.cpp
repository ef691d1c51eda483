// ServerSpec: comparison and conversion to and from JSON.
#include "fairlead/pool/server_spec_json.hpp"

#include <gtest/gtest.h>

namespace fairlead::pool {
namespace {

using namespace std::chrono_literals;

ServerSpec program_with_all_fields() {
  ServerSpec spec;
  spec.name = "files";
  Program program;
  program.command = "npx";
  program.args = {"-y", "server", "--key=${KEY}", "", "\"quoted\"\n"};
  program.env = {{"MODE", "ro"}, {"TOKEN", "${env:TOKEN:-none}"}};
  program.inherit_env = {"PATH", "HOME"};
  program.cwd = "/srv";
  program.stderr_mode = StderrMode::discard;
  Containment& containment = program.containment;
  containment.cgroup = Requirement::required;
  containment.cgroup_parent = "/sys/fs/cgroup/x";
  containment.memory_max = 512u << 20;
  containment.pids_max = 7;
  containment.limits = {1u << 30, 64, 100, 60, 0, 1u << 20};
  containment.limits_mode = Requirement::best_effort;
  containment.no_new_privs = Requirement::required;
  containment.files = {{"/srv"}, {"/tmp"}, {"/opt"}, false};
  containment.landlock = Requirement::best_effort;
  spec.transport = program;
  spec.sharing = Sharing::per_session;
  spec.pinned_revision = mcp::Revision::r2025_06_18;
  spec.restart = {1ms, 3, 2s, 0.5, 3s, 4, 5s, 6, 7s};
  spec.clocks = {1s, 2s, 3s, 4s, 5s, 6s, 7s, 8s, 9s};
  spec.max_calls = 9;
  spec.keep_running = true;
  spec.enabled = false;
  return spec;
}

ServerSpec through_json(const ServerSpec& spec) {
  const json::Raw json = to_json(spec);
  Result<ServerSpec> read = server_spec_from_json(spec.name, json::View(json));
  EXPECT_TRUE(read) << read.error().message() << " in " << json.text();
  return read ? *read : ServerSpec();
}

TEST(ServerSpecTest, ProgramSpecRoundTripsThroughJson) {
  const ServerSpec spec = program_with_all_fields();
  EXPECT_EQ(through_json(spec), spec) << to_json(spec).text() << "\n" << to_json(through_json(spec)).text();
}

// Fails if a new key is not written, or if program_with_all_fields() leaves a field at its default.
TEST(ServerSpecTest, EveryNonDefaultKeyOfProgramIsWritten) {
  const json::Raw json = to_json(program_with_all_fields());
  const json::View view(json);
  EXPECT_EQ(view.size(), 14u) << json.text();
  EXPECT_EQ(view["containment"].size(), 17u) << json.text();
  EXPECT_EQ(view["clocks"].size(), 9u) << json.text();
  EXPECT_EQ(view["restart"].size(), 9u) << json.text();
}

TEST(ServerSpecTest, AddressAndConnectorSpecsRoundTripThroughJson) {
  ServerSpec spec;
  spec.name = "web";
  spec.transport = Address{"https://h/mcp?key=${KEY}", {{"Authorization", "Bearer ${file:/run/token}"}}};
  EXPECT_EQ(through_json(spec), spec);
  EXPECT_EQ(to_json(spec).text(),
            R"({"url":"https://h/mcp?key=${KEY}","headers":{"Authorization":"Bearer ${file:/run/token}"}})");
  spec.transport = ConnectorName{"mine"};
  EXPECT_EQ(through_json(spec), spec);
}

TEST(ServerSpecTest, SpecsThatDifferInOneFieldAreNotEqual) {
  const ServerSpec spec = program_with_all_fields();
  ServerSpec other = spec;
  EXPECT_EQ(other, spec);
  std::get<Program>(other.transport).containment.files.write.clear();
  EXPECT_NE(other, spec);
  other = spec;
  other.restart.tool_crash_pause += 1ms;
  EXPECT_NE(other, spec);
  other = spec;
  other.transport = Address{"http://h", {}};
  EXPECT_NE(other, spec);
}

TEST(ServerSpecTest, InvalidSpecFailsWithItsKey) {
  const auto problem = [](std::string_view json) {
    const Result<ServerSpec> read = server_spec_from_json("a", json::View(json));
    return read ? std::string() : read.error().message();
  };
  EXPECT_EQ(problem(R"({"command":"x","evn":{}})"), "unknown key `evn` (did you mean `env`?)");
  EXPECT_EQ(problem(R"({"command":"x","clocks":{"idel":1}})"),
            "unknown key `idel` in [clocks] (did you mean `idle`?)");
  EXPECT_EQ(problem(R"({"command":"x","frobnicate":1})"), "unknown key `frobnicate`");
  EXPECT_EQ(problem(R"({"command":"x","connector":"y"})"),
            "the file has more than one of `command`, `url` and `connector`");
  EXPECT_EQ(problem(R"([])"), "the file is not a table");
  EXPECT_EQ(problem(R"({"command":"x","stderr":"loud"})"),
            "`stderr` is none of log, relay, discard, inherit");
}

}  // namespace
}  // namespace fairlead::pool
