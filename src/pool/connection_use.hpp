// ConnectionUse: statistics of an upstream's current connection: which sessions have used it, and how many
// messages it has received. Private to the layer.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace fairlead::pool {

class ConnectionUse {
 public:
  // To be called when a new connection is ready. Does not reset server_request_count().
  void reset() {
    has_been_called_ = false;
    only_session_ = "";
    response_count_ = 0;
  }

  void record_call(const std::string& session) {
    if (!std::exchange(has_been_called_, true)) {
      only_session_ = session;
    } else if (only_session_ && *only_session_ != session) {
      only_session_.reset();
    }
  }
  bool has_been_called() const noexcept { return has_been_called_; }
  // Returns the only session that has made calls, nullopt if there were several, or "" if there were no
  // calls.
  const std::optional<std::string>& only_session() const noexcept { return only_session_; }
  // To be called when these sessions have ended. If one of them is only_session(), only_session() becomes
  // nullopt, so that the connection is not assigned to an ended session when the server is unshared.
  void on_sessions_ended(const std::set<std::string, std::less<>>& sessions) {
    if (only_session_ && sessions.contains(*only_session_)) only_session_.reset();
  }

  void record_response() noexcept { ++response_count_; }
  std::uint64_t response_count() const noexcept { return response_count_; }
  void record_server_request() noexcept { ++server_request_count_; }
  // The number of requests that the server has sent, on all connections of the upstream.
  std::uint64_t server_request_count() const noexcept { return server_request_count_; }

 private:
  bool has_been_called_ = false;
  std::optional<std::string> only_session_ = "";
  std::uint64_t response_count_ = 0;
  std::uint64_t server_request_count_ = 0;
};

}  // namespace fairlead::pool
