// RecordingLink: a ClientLink that records the messages sent on it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "mcp/request_state.hpp"

namespace fairlead::mcp {

class RecordingLink final : public ClientLink {
 public:
  explicit RecordingLink(Loop& loop, std::string session = "",
                         PrincipalPtr principal = Principal::anonymous())
      : loop_(loop), session_(std::move(session)), principal_(std::move(principal)) {}

  Loop& loop() noexcept override { return loop_; }
  const PostedBytes& posted_bytes() const noexcept override { return posted_; }
  void notify(std::string_view method, const json::Raw& params, std::string_view) override {
    record(method, params);
  }
  Task<Result<json::Raw>> request(std::string method, json::Raw params, std::string,
                                  std::stop_token) override {
    record(method, params);
    co_return answer;
  }
  const PrincipalPtr& principal() const noexcept override { return principal_; }
  std::string_view session() const noexcept override { return session_; }

  std::vector<std::string> sent;  // "method params"
  bool sent_off_loop = false;     // a message was sent on another thread than that of the client's loop
  Result<json::Raw> answer = Error(ErrorKind::closed, "this link has no client");

 private:
  void record(std::string_view method, const json::Raw& params) {
    sent_off_loop = sent_off_loop || !loop_.in_loop_thread();
    sent.push_back(std::string(method) + " " + std::string(params.text()));
  }

  Loop& loop_;
  std::string session_;
  PrincipalPtr principal_;
  PostedBytes posted_{1u << 20};
};

}  // namespace fairlead::mcp
