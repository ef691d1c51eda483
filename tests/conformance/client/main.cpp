// conformance-client URL: what the official conformance suite has a client do. The suite says in the
// environment which scenario it plays, in which revision, and what else there is to know.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "scenarios.hpp"

namespace {

constexpr unsigned kDeadlineSeconds = 20;  // the suite waits for ever for a client that does not end

std::string from_environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value ? value : otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace fairlead;  // NOLINT: a program of its own
  if (argc != 2) {
    std::fprintf(stderr, "usage: conformance-client URL\n");
    return 2;
  }
  alarm(kDeadlineSeconds);
  const std::string name = from_environment("MCP_CONFORMANCE_SCENARIO", "");
  const conformance::Scenario* scenario = conformance::find_scenario(name);
  if (!scenario) {
    std::fprintf(stderr, "conformance-client: scenario `%s` is not supported yet%s\n", name.c_str(),
                 name.starts_with("auth/") ? ": it needs authorization" : "");
    return 2;
  }
  mcp::ClientOptions options;
  options.info = mcp::Implementation{"fairlead-conformance-client", "1.0.0", {}, {}, {}, {}};
  // Suites before 0.2 do not say; all they know is the legacy era, any revision of it.
  options.pinned = mcp::revision_named(from_environment("MCP_CONFORMANCE_PROTOCOL_VERSION", ""));
  options.probe = options.pinned.has_value();
  scenario->prepare(options);
  Result<blocking::Client> client = blocking::Client::connect(argv[1], options);
  Result<void> played = client ? Result<void>() : client.error();
  if (client) played = scenario->play(*client, from_environment("MCP_CONFORMANCE_CONTEXT", "{}"));
  if (played) return 0;
  std::fprintf(stderr, "conformance-client: %s: %s\n", name.c_str(), played.error().to_string().c_str());
  return 1;
}
