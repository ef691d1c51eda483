// CallFacts: the members of a request that header checks, routing, policy, rewriting and forwarding need.
// They are collected in one pass over `params` and attached to the message, so that no layer searches
// `params` again.
//
// A request in which a collected key occurs twice, in any spelling, is rejected (problem()). Two JSON readers
// may disagree about the value of a repeated key: the gateway would check one value and the server use
// another.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fairlead/base/error.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/rpc/message.hpp"

namespace fairlead::mcp {

// Immutable. The views point into the frame of the message, which this object keeps alive. The view of a
// missing member is absent. The types of the values are not checked.
class CallFacts final : public rpc::Annotation {
 public:
  // Returns the facts attached to a request or notification, or collects them if there are none.
  static std::shared_ptr<const CallFacts> of(const rpc::Message& message);
  // Collects the facts and attaches them to `message`, where of() finds them.
  static void attach(rpc::Message& message);

  explicit CallFacts(const rpc::Message& message);

  // Returns the error to respond with (code -32602) if a key is repeated or there are more members than
  // max_message_members; nullopt if the request is valid. If there is a problem, the views must not be used.
  const std::optional<Error>& problem() const noexcept { return problem_; }

  std::string method;
  json::View params;

  // Members of `params`.
  json::View name;
  json::View uri;
  json::View task_id;
  json::View cursor;
  json::View arguments;
  json::View meta;
  json::View ref;
  json::View task;
  json::View input_responses;
  json::View request_state;

  // Members of `ref`, the prompt or resource that a completion is requested for.
  json::View ref_type;
  json::View ref_name;
  json::View ref_uri;

  // Members of `_meta`.
  json::View progress_token;
  json::View protocol_version;
  json::View client_info;
  json::View client_capabilities;
  json::View log_level;
  json::View traceparent;
  json::View tracestate;
  json::View baggage;

  // Member of `client_capabilities`.
  json::View extensions;

  // Returns the name, URI or task id of the tool, prompt, resource or task that the request addresses. For a
  // completion, that of its `ref`. Absent for all other methods.
  json::View target() const noexcept { return target_; }
  // Returns the target as an unescaped string; nullopt if it is not a string. A string that is too long to be
  // a name or URI is returned in its original spelling.
  std::optional<std::string_view> target_text() const noexcept;
  // Returns true if the target is the URI of a resource.
  bool targets_resource() const noexcept { return targets_resource_; }

 private:
  friend class CallFactsReader;
  void find_target();

  Bytes frame_;
  json::View target_;
  std::string unescaped_target_;  // set only if the spelling has escapes
  std::optional<Error> problem_;
  bool targets_resource_ = false;
};

}  // namespace fairlead::mcp
