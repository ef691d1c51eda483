// RecordingLink: a client in memory, which notes what it is sent.
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
  const PostedBytes& posted() const noexcept override { return posted_; }
  void notify(std::string_view method, const json::Raw& params, std::string_view) override {
    note(method, params);
  }
  Task<Result<json::Raw>> request(std::string method, json::Raw params, std::string,
                                  std::stop_token) override {
    note(method, params);
    co_return answer;
  }
  const PrincipalPtr& principal() const noexcept override { return principal_; }
  std::string_view session() const noexcept override { return session_; }

  std::vector<std::string> heard;  // "method params"
  bool heard_elsewhere = false;    // something was sent by another thread than that of the client's loop
  Result<json::Raw> answer = Error(ErrorKind::closed, "this link has no client to ask");

 private:
  void note(std::string_view method, const json::Raw& params) {
    heard_elsewhere = heard_elsewhere || !loop_.here();
    heard.push_back(std::string(method) + " " + std::string(params.text()));
  }

  Loop& loop_;
  std::string session_;
  PrincipalPtr principal_;
  PostedBytes posted_{1u << 20};
};

}  // namespace fairlead::mcp
