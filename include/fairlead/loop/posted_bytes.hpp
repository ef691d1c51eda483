// PostedBytes: limits the bytes of messages that are posted from one loop to another for one connection and
// not yet received there.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include "fairlead/base/block_cache.hpp"
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
  // Every charge counts this many bytes more than requested, for the memory of the posted callback.
  static constexpr std::size_t kOverheadBytes = 256;

  explicit PostedBytes(std::size_t max_backlog_bytes) : state_(make_cached<State>(max_backlog_bytes)) {}

  // RAII handle for bytes that count against the limit until release() or destruction, on any thread.
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

  // Charges `bytes` and kOverheadBytes. Fails with `resource_exhausted` if that exceeds the limit; the
  // message names max_backlog_bytes.
  Result<Charge> charge(std::size_t bytes) const;
  std::size_t used_bytes() const noexcept { return state_->used; }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace fairlead
