// The client's part in the scenarios of the official conformance suite.
#pragma once

#include <fairlead/mcp/blocking.hpp>
#include <string>
#include <string_view>

namespace conformance {

using namespace fairlead;  // NOLINT: a program of its own

struct Scenario {
  std::string_view name;
  void (*prepare)(mcp::ClientOptions& options);
  // `context` is what the suite has to say about the scenario, JSON.
  Result<void> (*play)(blocking::Client& client, const std::string& context);
};

// Null when it is not known here.
const Scenario* find_scenario(std::string_view name);

}  // namespace conformance
