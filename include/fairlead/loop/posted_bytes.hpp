// PostedBytes: limits what waits in the queues between two loops for one connection.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include "fairlead/base/result.hpp"

namespace fairlead {

// Thread-safe. Copies share one limit.
class PostedBytes {
  struct State {
    explicit State(std::size_t limit) : max_bytes(limit) {}
    const std::size_t max_bytes;
    std::atomic<std::size_t> used = 0;
  };

 public:
  // Every charge counts this much more than it is asked for: the callback itself needs memory too.
  static constexpr std::size_t kOverhead = 256;

  explicit PostedBytes(std::size_t max_backlog_bytes) : state_(std::make_shared<State>(max_backlog_bytes)) {}

  // Bytes that count until they are released or the charge is destroyed, on any thread.
  class Charge {
   public:
    Charge() = default;
    Charge(Charge&&) noexcept = default;
    Charge& operator=(Charge&& other) noexcept {
      release();
      state_ = std::move(other.state_);
      bytes_ = other.bytes_;
      return *this;
    }
    ~Charge() { release(); }

    void release() noexcept {
      if (const auto state = std::exchange(state_, nullptr)) state->used -= bytes_;
    }

   private:
    friend class PostedBytes;
    Charge(std::shared_ptr<State> state, std::size_t bytes) : state_(std::move(state)), bytes_(bytes) {}

    std::shared_ptr<State> state_;
    std::size_t bytes_ = 0;
  };

  // Fails with `resource exhausted`, naming max_backlog_bytes, when they do not fit.
  Result<Charge> charge(std::size_t bytes) const;
  std::size_t used() const noexcept { return state_->used; }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace fairlead
