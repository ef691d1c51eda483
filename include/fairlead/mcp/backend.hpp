// Backend: serves the requests for a Server's features (tools, resources, prompts, completion) instead of the
// handlers registered with it. The gateway implements it to forward requests to other servers without
// decoding them. The Server itself still handles sessions, eras, envelopes and the subscriptions of clients
// (for the terms see docs/glossary.md).
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
  BackendRequest(rpc::Message request, std::shared_ptr<const CallFacts> request_facts,
                 Context request_context)
      : message(std::move(request)), facts(std::move(request_facts)), context(std::move(request_context)) {}

  rpc::Message message;  // as received: any request for tools, resources, prompts or completion
  std::shared_ptr<const CallFacts> facts;  // of `message`; never null, and facts->problem() is nullopt
  Context context;                         // identifies the client and sends messages to it
};

// The same for Backend::serve_directly().
struct DirectRequest {
  const rpc::Message& message;
  std::shared_ptr<const CallFacts> facts;
  Context context;
};

// A client's request to be notified of the updates of a resource.
struct BackendSubscription {
  BackendSubscription(std::string resource_uri, std::string client_session, PrincipalPtr client)
      : uri(std::move(resource_uri)), session(std::move(client_session)), principal(std::move(client)) {}

  std::string uri;
  std::string session;  // see Context::session()
  PrincipalPtr principal;
  std::stop_token stop;  // stop is requested if the client cancels before Backend::subscribe() has completed
  // Called by the backend, from any thread, when the resource or a resource nested in it was updated. `uri`
  // is the URI of the resource that was updated.
  std::function<void(const std::string& uri)> on_updated;
};

// The methods are called on the threads of the loops that serve the Server.
class Backend {
 public:
  virtual ~Backend() = default;

  // Returns whether the capability ("tools", "prompts", "resources", "completions" or "logging") is
  // advertised. Requests for other capabilities are rejected before they reach the backend.
  virtual bool has_capability(std::string_view capability) const = 0;
  // Serves a request. Returns the complete result object in the form that the revision of the request
  // specifies, or an error.
  virtual Task<Answer> serve(BackendRequest request) = 0;
  // Serves a request without a coroutine, which costs less: returns true, and responds before or after it
  // returns. Returns false, without an effect except on `request`, if serve() must be called.
  virtual bool serve_directly(DirectRequest&& request, const std::shared_ptr<Responder>& responder) {
    static_cast<void>(request), static_cast<void>(responder);
    return false;
  }
  // Returns the arguments of a tool that clients send as HTTP headers. Returns null if the tool is not
  // visible to `principal` or none of its arguments is sent as a header. Called for each tools/call over
  // HTTP.
  virtual HeaderParams header_params(std::string_view tool, const Principal& principal) const = 0;
  // Subscribes to the updates of a resource. Once the returned task has completed, every later update is
  // reported to `on_updated`. The subscription lasts until the returned handle is destroyed.
  virtual Task<Result<std::shared_ptr<void>>> subscribe(BackendSubscription subscription) = 0;
  // Called when a legacy client has sent `initialize`. From then on the backend may send the client messages
  // that belong to no request. `context_source` returns the context of that client, or nullopt once the
  // client has disconnected.
  using ContextSource = std::function<std::optional<Context>()>;
  virtual void on_session_began(std::string_view session, ContextSource context_source) = 0;
  // Called when a legacy client has set its log level: it receives messages of this and more severe levels.
  virtual void on_log_level_set(std::string_view session, LoggingLevel level) = 0;
  // Called when a client's connection has ended and none of its requests is in progress. For `session` see
  // Context::session().
  virtual void on_session_ended(std::string_view session) = 0;
};

}  // namespace fairlead::mcp
