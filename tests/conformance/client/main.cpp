// conformance-client URL: the client for the client scenarios of the official conformance suite. The suite
// sets the scenario, the revision and the context of the scenario in environment variables.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "scenarios.hpp"

namespace {

constexpr unsigned kTimeoutSeconds = 20;  // the suite has no timeout of its own for a client

std::string environment_value(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value ? value : fallback;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace fairlead;  // NOLINT: a program of its own
  if (argc != 2) {
    std::fprintf(stderr, "usage: conformance-client URL\n");
    return 2;
  }
  alarm(kTimeoutSeconds);
  const std::string name = environment_value("MCP_CONFORMANCE_SCENARIO", "");
  const conformance::Scenario* scenario = conformance::find_scenario(name);
  if (!scenario) {
    std::fprintf(stderr, "conformance-client: scenario `%s` is not supported yet%s\n", name.c_str(),
                 name.starts_with("auth/") ? ": it needs authorization" : "");
    return 2;
  }
  mcp::ClientOptions options;
  options.info = mcp::Implementation{"fairlead-conformance-client", "1.0.0", {}, {}, {}, {}};
  // Suites before 0.2 do not set the revision. They accept every revision of the legacy era.
  options.pinned_revision = mcp::revision_named(environment_value("MCP_CONFORMANCE_PROTOCOL_VERSION", ""));
  options.probe = options.pinned_revision.has_value();
  scenario->set_options(options);
  Result<blocking::Client> client = blocking::Client::connect(argv[1], options);
  Result<void> outcome = client ? Result<void>() : client.error();
  if (client) outcome = scenario->run(*client, environment_value("MCP_CONFORMANCE_CONTEXT", "{}"));
  if (outcome) return 0;
  std::fprintf(stderr, "conformance-client: %s: %s\n", name.c_str(), outcome.error().to_string().c_str());
  return 1;
}
