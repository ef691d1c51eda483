// What has to change in a request and in its result when they pass from a client of one era to a server of
// perhaps the other. Where both speak the same era, nothing does but the name; every byte that need not
// change does not.
#pragma once

#include <optional>
#include <string>

#include "fairlead/json/view.hpp"
#include "fairlead/mcp/outgoing_request.hpp"
#include "fairlead/mcp/types.hpp"
#include "fairlead/protocol/revision.hpp"
#include "fairlead/rpc/message.hpp"
#include "mcp/request_splice.hpp"

namespace fairlead::gateway {

// The client as a server of the other era has to be told of it.
struct ClientDescription {
  mcp::Revision revision;
  json::View capabilities;
  json::View info;
  std::optional<mcp::LoggingLevel> log_level;
};

// A client's request as the server gets it: under the server's own name for what it is about, and in the
// server's era.
class PassedRequest final : public mcp::OutgoingRequest {
 public:
  // `target` is the server's own name of the tool or prompt; nullopt leaves what is there.
  PassedRequest(rpc::Message request, std::shared_ptr<const mcp::CallFacts> facts,
                std::optional<std::string> target, ClientDescription client)
      : OutgoingRequest(std::move(facts)),
        request_(std::move(request)),
        target_(std::move(target)),
        client_(std::move(client)) {}

  // From an earlier round, for a modern server: the state that it gave, and, of a legacy client, the answers
  // to its questions. A modern client's answers are in its request.
  void set_answers(json::Raw answers, json::Raw state) {
    answers_ = std::move(answers);
    state_ = std::move(state);
  }

  rpc::Rope encode(mcp::Revision server, Sending sending) const override;
  std::string_view target() const noexcept override;
  std::size_t size() const noexcept override {
    return OutgoingRequest::size() + answers_.text().size() + state_.text().size();
  }

 private:
  void remove_modern(mcp::RequestSplice& splice) const;
  void add_modern(mcp::RequestSplice& splice, mcp::Revision server) const;

  rpc::Message request_;
  std::optional<std::string> target_;
  ClientDescription client_;
  json::Raw answers_;
  json::Raw state_;
};

// The result as the client gets it. REQUIRES: `answer` is a response.
json::Raw result_for_client(const rpc::Message& answer, std::string_view method, mcp::Revision server,
                            mcp::Revision client, const mcp::Implementation& gateway);

}  // namespace fairlead::gateway
