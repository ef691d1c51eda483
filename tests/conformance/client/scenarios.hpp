// Scenario: what the client does in a scenario of the official conformance suite.
#pragma once

#include <fairlead/mcp/blocking.hpp>
#include <string>
#include <string_view>

namespace conformance {

using namespace fairlead;  // NOLINT: a program of its own

struct Scenario {
  std::string_view name;
  void (*set_options)(mcp::ClientOptions& options);
  // Makes the calls of the scenario. `context` is the JSON that the suite passes for it.
  Result<void> (*run)(blocking::Client& client, const std::string& context);
};

// Returns null if this client does not implement the scenario.
const Scenario* find_scenario(std::string_view name);

}  // namespace conformance
