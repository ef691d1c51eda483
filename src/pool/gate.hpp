// Gate: lets at most so many in at a time. The others wait in line for a while: urgent ones before the
// others, otherwise those of each caller in turn, and each caller's in their order. Private to the layer.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "fairlead/base/result.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/loop/task.hpp"
#include "pool/fair_line.hpp"

namespace fairlead::pool {

// Somebody who waits until called, out of time, or no longer interested. Woken by the loop, never from within
// whoever calls: those who wait may do anything.
class Waiter : public std::enable_shared_from_this<Waiter> {
 public:
  explicit Waiter(Loop& loop) : loop_(loop) {}
  void call();
  bool called() const noexcept { return called_; }
  // True when it was called; false otherwise.
  static Task<bool> wait(std::shared_ptr<Waiter> self, Clock::duration timeout, std::stop_token stop);

 private:
  Loop& loop_;
  Event woken_;
  bool called_ = false;
};

class Gate : public std::enable_shared_from_this<Gate> {
 public:
  // Being inside. Letting go of it lets the next one in.
  class Pass {
   public:
    Pass() = default;
    explicit Pass(std::shared_ptr<Gate> gate) : gate_(std::move(gate)) {}
    Pass(Pass&&) noexcept = default;
    Pass& operator=(Pass&& other) noexcept {
      std::swap(gate_, other.gate_);
      return *this;
    }
    ~Pass() {
      if (gate_) gate_->leave();
    }
    explicit operator bool() const noexcept { return static_cast<bool>(gate_); }

   private:
    std::shared_ptr<Gate> gate_;
  };

  Gate(Loop& loop, std::size_t limit) : loop_(loop), limit_(limit) {}

  // An empty pass when there is no room, or others wait for it.
  Pass try_enter();
  // The same, or waits for it.
  Task<Pass> enter(Clock::duration timeout, std::stop_token stop, bool urgent = false,
                   Caller caller = Caller());

  std::size_t limit() const noexcept { return limit_; }
  std::size_t inside() const noexcept { return inside_; }
  std::size_t waiting() const noexcept { return urgent_line_.size() + line_.size(); }

 private:
  struct Standing;  // in line
  void leave();

  Loop& loop_;
  std::size_t limit_;
  std::size_t inside_ = 0;
  FairLine urgent_line_;
  FairLine line_;
};

}  // namespace fairlead::pool
