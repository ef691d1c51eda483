// ForwardedRequest: a received request that is forwarded to another server. It is encoded when the connection
// to the server is known, because the connection determines the era, and again for each retry.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "fairlead/protocol/call_facts.hpp"
#include "fairlead/protocol/revision.hpp"
#include "fairlead/rpc/message.hpp"
#include "fairlead/rpc/rope.hpp"

namespace fairlead::mcp {

class ForwardedRequest {
 public:
  virtual ~ForwardedRequest() = default;

  // The sender's progress token is always replaced by `id`, so that tokens of different senders cannot
  // collide at the server.
  struct EncodeOptions {
    std::string_view id;      // the id of the request on the connection to the server
    bool add_progress_token;  // add `id` as the progress token if the sender set no token
  };
  // Returns the complete request for a server of `revision`.
  virtual rpc::Rope encode(Revision revision, EncodeOptions options) const = 0;
  // The tool, prompt or URI that the request names, under its name at the server; empty if the request names
  // none.
  virtual std::string_view target() const noexcept = 0;
  // The approximate size of encode()'s result in bytes.
  virtual std::size_t approximate_size() const noexcept {
    return method().size() + facts_->params.text().size();
  }

  // The facts of the request as it was received.
  const std::shared_ptr<const CallFacts>& facts() const noexcept { return facts_; }
  std::string_view method() const noexcept { return facts_->method; }
  // The tool that the request calls; empty if it is not a tool call.
  std::string_view tool() const noexcept { return method() == "tools/call" ? target() : std::string_view(); }
  // Whether the sender requested progress notifications.
  bool wants_progress() const noexcept {
    return !facts_->progress_token.absent() && !facts_->progress_token.is(json::Type::null);
  }

 protected:
  explicit ForwardedRequest(std::shared_ptr<const CallFacts> facts) : facts_(std::move(facts)) {}

 private:
  std::shared_ptr<const CallFacts> facts_;
};

// A request that is forwarded unchanged except for its id and its progress token.
class VerbatimRequest final : public ForwardedRequest {
 public:
  explicit VerbatimRequest(rpc::Message message)
      : ForwardedRequest(CallFacts::of(message)), message_(std::move(message)) {}

  rpc::Rope encode(Revision revision, EncodeOptions options) const override;
  std::string_view target() const noexcept override {
    return facts()->target_text().value_or(std::string_view());
  }

 private:
  rpc::Message message_;
};

}  // namespace fairlead::mcp
