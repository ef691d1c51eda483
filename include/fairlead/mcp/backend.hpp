// Backend: answers for a server's features in the place of what was registered with it. A gateway is one:
// what it offers is elsewhere, and passes through without being taken apart. Sessions, eras, envelopes and
// subscriptions stay the server's business.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "fairlead/json/raw.hpp"
#include "fairlead/loop/task.hpp"
#include "fairlead/mcp/context.hpp"
#include "fairlead/peer/methods.hpp"
#include "fairlead/rpc/message.hpp"

namespace fairlead::mcp {

struct BackendRequest {
  BackendRequest(rpc::Message request, Context asking)
      : message(std::move(request)), context(std::move(asking)) {}

  rpc::Message message;  // as it came: any request of tools, resources, prompts and completion
  Context context;       // who asks, and the way back to them
};

// Called on the loops the server is served on.
class Backend {
 public:
  virtual ~Backend() = default;

  // "tools", "prompts", "resources", "completions", "logging": what is advertised and let through.
  virtual bool has_capability(std::string_view capability) const = 0;
  // The whole result, as the revision of the request has it.
  virtual Task<Answer> serve(BackendRequest request) = 0;
  // The input schema of a tool, where it is known; for HTTP's check of headers.
  virtual json::Raw input_schema(std::string_view tool) const = 0;
  // Somebody subscribed to a resource that nobody was subscribed to before, or the last one let go of it.
  virtual void subscribed(const std::string& uri, bool on) = 0;
  // A client's connection has ended; see Context::session().
  virtual void session_ended(std::string_view session) = 0;
};

}  // namespace fairlead::mcp
