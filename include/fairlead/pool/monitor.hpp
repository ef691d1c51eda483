// PoolMonitor: what an operator sees of the servers of a pool while they run: the last lines that their
// processes wrote to stderr, and the state transitions of their upstreams. All calls are made on the loop
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/redactor.hpp"
#include "fairlead/base/string_map.hpp"
#include "fairlead/pool/supervisor.hpp"

namespace fairlead::pool {

class Upstream;

struct StderrLine {
  std::string server;
  std::string key;   // of the upstream; see Upstream::key()
  std::string text;  // with secrets redacted
};

class PoolMonitor : public std::enable_shared_from_this<PoolMonitor> {
 public:
  // The oldest lines of a server, and of all servers, are discarded beyond these limits.
  static constexpr std::size_t kMaxServerLines = 1'000;
  static constexpr std::size_t kMaxTotalLines = 20'000;
  static constexpr std::size_t kMaxTotalBytes = 16u << 20;

  // `redactor`: see PoolOptions::redactor.
  explicit PoolMonitor(std::shared_ptr<const SharedRedactor> redactor) : redactor_(std::move(redactor)) {}

  // Returns the redactor for the secrets that servers are connected with now. Errors of the pool and lines of
  // stderr are already redacted; use it for other text from servers.
  std::shared_ptr<const Redactor> redactor() const { return redactor_->snapshot(); }

  using LineCallback = std::function<void(const StderrLine&)>;
  using TransitionCallback = std::function<void(const std::shared_ptr<Upstream>&, const Transition&)>;

  // Returns the last lines of a server, at most `max`, oldest first; also those of processes that have ended.
  std::vector<StderrLine> last_lines(std::string_view server, std::size_t max) const;
  // The following functions call `callback` until the returned handle is destroyed.
  std::shared_ptr<void> on_line(LineCallback callback);
  std::shared_ptr<void> on_transition(TransitionCallback callback);

  // Called by the pool.
  void add_line(StderrLine line);
  void add_transition(const std::shared_ptr<Upstream>& upstream, const Transition& transition);
  void remove_server(std::string_view server);

 private:
  using Lines = std::list<StderrLine>;
  template <class Callback>
  using Callbacks = std::list<std::shared_ptr<const Callback>>;

  void discard_oldest_of(const std::string& server);

  std::shared_ptr<const SharedRedactor> redactor_;
  Lines lines_;  // of all servers, oldest first
  std::size_t bytes_ = 0;
  StringMap<std::deque<Lines::iterator>> lines_by_server_;
  std::shared_ptr<Callbacks<LineCallback>> line_callbacks_ = std::make_shared<Callbacks<LineCallback>>();
  std::shared_ptr<Callbacks<TransitionCallback>> transition_callbacks_ =
      std::make_shared<Callbacks<TransitionCallback>>();
};

}  // namespace fairlead::pool
