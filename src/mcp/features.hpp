// The features of a server, apart from era and transport: each takes a request's state and params and yields
// a result. What is different between the eras is put on by ResultWriter and by the session.
#pragma once

#include <memory>

#include "fairlead/base/log.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/loop/task.hpp"
#include "fairlead/peer/methods.hpp"
#include "mcp/request_state.hpp"
#include "mcp/server_state.hpp"

namespace fairlead::mcp {

// A request to a feature. Cheap to copy; keeps what it names alive.
struct FeatureCall {
  std::shared_ptr<ServerState> server;
  std::shared_ptr<RequestState> state;
  std::string method;
  json::Raw params;  // an object, or absent
  Log log;
  rpc::Message message;  // the whole of it

  json::View args() const noexcept { return json::View(params); }
  // A member of params, by the index of the scan; absent if there is none.
  json::View arg(std::string_view key) const { return message.members().find(args().text(), key); }
};

// -32602 for an object, named `what`, of more than `max_message_members`; nullopt for any other value
// (dispatch.cpp).
std::optional<Error> members_problem(std::string_view what, json::View object);
Error too_many_members(std::string_view what);

// Writes a result object as the era wants it: modern results say what they are and who made them.
class ResultWriter {
 public:
  ResultWriter(const ServerState& server, Revision revision, std::string_view result_type = "complete");
  json::Writer& out() noexcept { return out_; }
  void cache_hint(const CacheHint& hint);
  // `meta` are further members for `_meta`.
  json::Raw finish(const json::Raw& meta = json::Raw());

 private:
  const ServerState& server_;
  Revision revision_;
  json::Writer out_;
};

// A failure of ours: the log says what it was, the client only that.
Error internal(const FeatureCall& call, const std::string& what);
std::string what_was_thrown(const std::exception_ptr& thrown);

// Questions, in the modern era: takes in what earlier rounds and this one have answered; and the result that
// asks those that are open.
Result<void> take_answers(const FeatureCall& call);
json::Raw input_required(const FeatureCall& call);

// A cursor says where the next page begins and of how many entries: if the list has changed since, it is no
// longer valid.
std::string make_cursor(std::size_t from, std::size_t total);
Result<std::size_t> read_cursor(json::View cursor, std::size_t total);

// Reads a file of a skill, as a resource.
Server::ReadResource reader_of(std::shared_ptr<const OfferedFile> file);

Answer list(const FeatureCall& call, ListKind kind);
Task<Answer> call_tool(FeatureCall call);  // tool_calls.cpp
Task<Answer> read_resource(FeatureCall call);
Task<Answer> get_prompt(FeatureCall call);
Answer complete(const FeatureCall& call);

}  // namespace fairlead::mcp
