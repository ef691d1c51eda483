// OutgoingRequest: a request that came from elsewhere, on its way to a server. It is encoded when the
// connection that carries it is known, since that decides the era; and anew when it is sent once more.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "fairlead/protocol/call_facts.hpp"
#include "fairlead/protocol/revision.hpp"
#include "fairlead/rpc/message.hpp"
#include "fairlead/rpc/rope.hpp"

namespace fairlead::mcp {

class OutgoingRequest {
 public:
  virtual ~OutgoingRequest() = default;

  // Its id on one connection, and whether that becomes a progress token where the sender gave none. A token
  // that the sender gave is always replaced by the id: no two senders' tokens meet at the server.
  struct Sending {
    std::string_view id;
    bool add_token;
  };
  // The whole request for a server of `revision`.
  virtual rpc::Rope encode(Revision revision, Sending sending) const = 0;
  // The tool, prompt or URI it is for, by the server's own name; empty if it is for none.
  virtual std::string_view target() const noexcept = 0;
  // About as many bytes as encode() makes.
  virtual std::size_t size() const noexcept { return method().size() + facts_->params.text().size(); }

  // Of the request as it came.
  const std::shared_ptr<const CallFacts>& facts() const noexcept { return facts_; }
  std::string_view method() const noexcept { return facts_->method; }
  // The tool that is called; empty if none is.
  std::string_view tool() const noexcept { return method() == "tools/call" ? target() : std::string_view(); }
  // Whether its sender wants to hear of its progress.
  bool wants_progress() const noexcept {
    return !facts_->progress_token.absent() && !facts_->progress_token.is(json::Type::null);
  }

 protected:
  explicit OutgoingRequest(std::shared_ptr<const CallFacts> facts) : facts_(std::move(facts)) {}

 private:
  std::shared_ptr<const CallFacts> facts_;
};

// A request that is sent as it came, but for its id and its progress token.
class VerbatimRequest final : public OutgoingRequest {
 public:
  explicit VerbatimRequest(rpc::Message message)
      : OutgoingRequest(CallFacts::of(message)), message_(std::move(message)) {}

  rpc::Rope encode(Revision revision, Sending sending) const override;
  std::string_view target() const noexcept override {
    return facts()->target_text().value_or(std::string_view());
  }

 private:
  rpc::Message message_;
};

}  // namespace fairlead::mcp
