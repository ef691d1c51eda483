// ConnectionUse: what the connection of an upstream has been used for: by which sessions, and with what
// success. Private to the layer.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace fairlead::pool {

class ConnectionUse {
 public:
  // A new connection is ready. Questions are counted on.
  void reset() {
    used_ = false;
    only_session_ = "";
    answers_ = 0;
  }

  void note_call(const std::string& session) {
    if (!std::exchange(used_, true)) {
      only_session_ = session;
    } else if (only_session_ && *only_session_ != session) {
      only_session_.reset();
    }
  }
  bool used() const noexcept { return used_; }
  // The session whose calls it has had; nullopt when there were several. Empty: it has had no calls.
  const std::optional<std::string>& only_session() const noexcept { return only_session_; }
  // The connection cannot be kept for one of these sessions any more.
  void sessions_ended(const std::set<std::string, std::less<>>& sessions) {
    if (only_session_ && sessions.contains(*only_session_)) only_session_.reset();
  }

  void note_answer() noexcept { ++answers_; }
  std::uint64_t answers() const noexcept { return answers_; }
  void note_question() noexcept { ++questions_; }
  // Requests of the server, on all connections of its upstream.
  std::uint64_t questions() const noexcept { return questions_; }

 private:
  bool used_ = false;
  std::optional<std::string> only_session_ = "";
  std::uint64_t answers_ = 0;
  std::uint64_t questions_ = 0;
};

}  // namespace fairlead::pool
