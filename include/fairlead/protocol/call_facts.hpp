// CallFacts: everything that header checks, routing, policy, rewriting and forwarding need of a request,
// collected in one pass over its params and carried with it. No layer looks up keys in `params` again.
//
// Two readers of a repeated key may disagree about its value, and what was checked would not be what is done:
// a key of those collected here that occurs twice is a problem(), however it is spelled.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fairlead/base/error.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/rpc/message.hpp"

namespace fairlead::mcp {

// Immutable once made. The views look into the message's frame, which is kept alive. A value that is not
// there is absent; types are not checked.
class CallFacts final : public rpc::Annotation {
 public:
  // The facts of a request or notification: those attached to it, or new ones.
  static std::shared_ptr<const CallFacts> of(const rpc::Message& message);
  // Collects the facts and attaches them to the message, so that of() finds them.
  static void attach(rpc::Message& message);

  explicit CallFacts(const rpc::Message& message);

  // Why the request must be refused, with the code to answer with (-32602): a repeated key, or more than
  // max_message_members. The views are not to be used then.
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

  // Members of `ref`, what completions are asked for.
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

  // Member of the client's capabilities.
  json::View extensions;

  // What the request is about: the tool or prompt, the resource, the task. For a completion that of its
  // `ref`. Absent for other methods.
  json::View target() const noexcept { return target_; }
  // The same as a string, unescaped; nullopt if it is no string. One that is too long for any name or URI is
  // left as spelled.
  std::optional<std::string_view> target_text() const noexcept;
  // Whether the target is a resource, by its URI.
  bool is_about_resource() const noexcept { return about_resource_; }

 private:
  friend class CallFactsReader;
  void find_target();

  Bytes frame_;
  json::View target_;
  std::string unescaped_target_;  // only if its spelling has escapes
  std::optional<Error> problem_;
  bool about_resource_ = false;
};

}  // namespace fairlead::mcp
