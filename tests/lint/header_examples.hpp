// The names that usage examples in public headers refer to without declaring them
// (tools/lint/header_examples.py). They are declared only: examples are compiled, not linked.
#pragma once

#include <memory>
#include <string>

#include "fairlead/gateway/config.hpp"
#include "fairlead/gateway/gateway_server.hpp"
#include "fairlead/loop/loop.hpp"
#include "fairlead/mcp/serve.hpp"
#include "fairlead/mcp/server.hpp"
#include "fairlead/peer/peer.hpp"
#include "fairlead/pool/pool.hpp"

namespace fairlead {

extern bool interrupted;
extern Loop& loop;
extern Loop& other_loop;
extern Log log;
extern std::shared_ptr<Connection> connection;
extern gateway::Config config;
extern pool::ServerSpec spec;
extern pool::Target target;
extern std::shared_ptr<const mcp::ForwardedRequest> request;
Result<void> invalid(const std::string& message);
extern mcp::Server server;
Task<Result<int>> first();
Task<Result<int>> second();
Result<void> report(const Error& error);
}  // namespace fairlead
