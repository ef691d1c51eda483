// Backend: answers for a server's features in the place of what was registered with it. A gateway is one:
// what it offers is elsewhere, and passes through without being taken apart. Sessions, eras, envelopes and
// subscriptions stay the server's business.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "fairlead/base/principal.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/loop/task.hpp"
#include "fairlead/mcp/context.hpp"
#include "fairlead/peer/methods.hpp"
#include "fairlead/protocol/call_facts.hpp"
#include "fairlead/protocol/header_annotations.hpp"
#include "fairlead/rpc/message.hpp"

namespace fairlead::mcp {

struct BackendRequest {
  BackendRequest(rpc::Message request, std::shared_ptr<const CallFacts> found, Context asking)
      : message(std::move(request)), facts(std::move(found)), context(std::move(asking)) {}

  rpc::Message message;  // as it came: any request of tools, resources, prompts and completion
  std::shared_ptr<const CallFacts> facts;  // of the message; never null, and without a problem
  Context context;                         // who asks, and the way back to them
};

// A client's wish to hear of a resource.
struct BackendSubscription {
  BackendSubscription(std::string resource, std::string of_session, PrincipalPtr of_principal)
      : uri(std::move(resource)), session(std::move(of_session)), principal(std::move(of_principal)) {}

  std::string uri;
  std::string session;  // see Context::session()
  PrincipalPtr principal;
  std::stop_token stop;  // it is not wanted any more, while it is being made
  // Called whenever the resource, or one inside it, has changed; with the URI of that one. From any thread.
  std::function<void(const std::string& uri)> updated;
};

// Called on the loops the server is served on.
class Backend {
 public:
  virtual ~Backend() = default;

  // "tools", "prompts", "resources", "completions", "logging": what is advertised and let through.
  virtual bool has_capability(std::string_view capability) const = 0;
  // The whole result, as the revision of the request has it.
  virtual Task<Answer> serve(BackendRequest request) = 0;
  // The arguments of a tool that travel as HTTP headers; null if the tool is unknown to this principal, or
  // none does. Called for each tools/call over HTTP.
  virtual HeaderParams header_params(std::string_view tool, const Principal& principal) const = 0;
  // Ends when changes are sure to be told. The subscription lasts for as long as what it yields is kept.
  virtual Task<Result<std::shared_ptr<void>>> subscribe(BackendSubscription subscription) = 0;
  // A client of the legacy era has introduced itself: it can be spoken to from now on without having asked.
  // `reach` yields the way to it, or nothing when it is gone.
  using Reach = std::function<std::optional<Context>()>;
  virtual void session_began(std::string_view session, Reach reach) = 0;
  // A client of the legacy era wants log messages from this level on.
  virtual void log_level_set(std::string_view session, LoggingLevel level) = 0;
  // A client's connection has ended, and nothing it asked for is under way; see Context::session().
  virtual void session_ended(std::string_view session) = 0;
};

}  // namespace fairlead::mcp
