// Features of a server (tools, resources, prompts, completion), independent of era and transport. Each
// function computes the result of a request from its params and the state of the server. ResultWriter and the
// session add the members in which the eras differ.
#pragma once

#include <memory>

#include "fairlead/base/log.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/loop/task.hpp"
#include "fairlead/peer/methods.hpp"
#include "mcp/request_state.hpp"
#include "mcp/server_state.hpp"

namespace fairlead::mcp {

// A request of a client for a feature. Cheap to copy. Owns or shares everything that it refers to.
struct FeatureRequest {
  std::shared_ptr<ServerState> server;
  std::shared_ptr<RequestState> state;
  std::string method;
  json::Raw params;  // an object, or absent
  Log log;
  rpc::Message message;  // the complete request

  json::View params_view() const noexcept { return json::View(params); }
  // Returns a member of params; absent if there is none. Uses the member index of the message, so that large
  // params are not scanned again.
  json::View find_param(std::string_view key) const {
    return message.members().find(params_view().text(), key);
  }
};

// Returns error -32602 if `object` is an object with more than `max_message_members` members; otherwise
// nullopt. The error message refers to the object by `name`.
std::optional<Error> check_member_count(std::string_view name, json::View object);
Error too_many_members_error(std::string_view name);

// Writes a result object in the form of the era: modern results contain `resultType` and the server's info.
class ResultWriter {
 public:
  ResultWriter(const ServerState& server, Revision revision, std::string_view result_type = "complete");
  json::Writer& out() noexcept { return out_; }
  // Does nothing in the legacy era, which has no cache hints.
  void write_cache_hint(const CacheHint& hint);
  // Returns the result. The members of `meta` are added to `_meta`.
  json::Raw finish(const json::Raw& meta = json::Raw());

 private:
  const ServerState& server_;
  Revision revision_;
  json::Writer out_;
};

// Logs `reason` and returns error -32603 "Internal error", which does not contain `reason`.
Error log_internal_error(const FeatureRequest& request, const std::string& reason);
// Returns what() of an exception, or a fixed text if it is not a std::exception.
std::string exception_message(const std::exception_ptr& thrown);

// Adds the input responses of earlier rounds (`requestState`) and of this one (`inputResponses`) to the state
// of the request. Fails with -32602 if either is invalid. Does nothing in the legacy era.
Result<void> collect_input_responses(const FeatureRequest& request);
// Returns the `input_required` result, which contains the open input requests and the sealed `requestState`.
json::Raw input_required_result(const FeatureRequest& request);

// A cursor contains the index of the first entry of the next page and the length of the list; it becomes
// invalid when the length changes. read_list_cursor() returns the index, or 0 if `cursor` is absent. It fails
// with -32602 if the cursor is invalid.
std::string make_list_cursor(std::size_t from, std::size_t total);
Result<std::size_t> read_list_cursor(json::View cursor, std::size_t total);

// Each serves the requests of one method, except handle_list(), which serves those of all lists. For
// tools/call see tool_calls.hpp.
Answer handle_list(const FeatureRequest& request, ListKind kind);
Task<Answer> handle_read_resource(FeatureRequest request);
Task<Answer> handle_get_prompt(FeatureRequest request);
Answer handle_complete(const FeatureRequest& request);

}  // namespace fairlead::mcp
