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
};

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

Answer list(const FeatureCall& call, ListKind kind);
// Answers at once when the tool is a plain function.
std::optional<Answer> call_plain_tool(const FeatureCall& call);
Task<Answer> call_tool(FeatureCall call);
Task<Answer> read_resource(FeatureCall call);
Task<Answer> get_prompt(FeatureCall call);
Answer complete(const FeatureCall& call);

}  // namespace fairlead::mcp
