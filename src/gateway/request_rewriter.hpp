// RequestRewriter: rewrites a client's request for the server that it is forwarded to. result_for_client()
// rewrites the server's result for the client. If client and server have the same era (docs/glossary.md),
// only the name of the tool or prompt changes. Bytes that need not change are copied unchanged.
#pragma once

#include <optional>
#include <string>

#include "fairlead/json/view.hpp"
#include "fairlead/mcp/forwarded_request.hpp"
#include "fairlead/mcp/types.hpp"
#include "fairlead/protocol/revision.hpp"
#include "fairlead/rpc/message.hpp"
#include "mcp/request_splice.hpp"

namespace fairlead::gateway {

// Describes the client of a request. If a legacy client's request is forwarded to a modern server, this
// becomes the envelope (`_meta`) of the request.
struct ClientDescription {
  mcp::Revision revision;
  json::View capabilities;
  json::View info;
  std::optional<mcp::LoggingLevel> log_level;
};

// A client's request as it is sent to the server: it has the server's own name of the tool or prompt, and the
// members that the server's era requires.
class RequestRewriter final : public mcp::ForwardedRequest {
 public:
  // `target` is the server's own name of the tool or prompt; nullopt keeps the name in the request.
  RequestRewriter(mcp::RequestText request, std::shared_ptr<const mcp::CallFacts> facts,
                  std::optional<std::string_view> target, ClientDescription client)
      : ForwardedRequest(std::move(facts)),
        request_(std::move(request)),
        target_(std::move(target)),
        client_(std::move(client)) {}

  // Adds the results of the previous round to the request, for a modern server: the `requestState` that the
  // server returned, and the input responses of a legacy client. (The input responses of a modern client are
  // already in its request.)
  void set_round(json::Raw input_responses, json::Raw request_state) {
    input_responses_ = std::move(input_responses);
    request_state_ = std::move(request_state);
  }

  rpc::Rope encode(mcp::Revision server, EncodeOptions options) const override;
  std::string_view target() const noexcept override;
  std::size_t approximate_size() const noexcept override {
    return ForwardedRequest::approximate_size() + input_responses_.text().size() +
           request_state_.text().size();
  }

 private:
  void remove_modern_members(mcp::RequestSplice& splice) const;
  void add_modern_members(mcp::RequestSplice& splice, mcp::Revision server) const;

  mcp::RequestText request_;
  std::optional<std::string> target_;
  ClientDescription client_;
  json::Raw input_responses_;
  json::Raw request_state_;
};

// Returns the result of `response` as it is sent to a client of revision `client`. `server` is the revision
// of the server that responded, `method` the method of the request, and `server_info` the JSON of the
// gateway's serverInfo, which modern results carry. REQUIRES: `response` is a success response.
json::Raw result_for_client(const rpc::Message& response, std::string_view method, mcp::Revision server,
                            mcp::Revision client, std::string_view server_info);

}  // namespace fairlead::gateway
