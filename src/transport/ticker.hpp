// Ticker: calls each of its listeners once per period. The endpoint uses it for keep-alive comments, idle
// sessions and request timeouts. One timer serves all listeners; their ticks are spread over the period.
// Private to src/transport.
#pragma once

#include <array>
#include <boost/intrusive/list.hpp>
#include <chrono>

#include "fairlead/loop/timer.hpp"

namespace fairlead::transport {

// An object that a Ticker calls. The destructor removes the listener from its ticker.
class TickListener
    : public boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  // Called on the loop thread, once per period. May destroy this and other listeners.
  virtual void on_tick(Clock::time_point now) = 0;

 protected:
  ~TickListener() = default;
};

class Ticker {
 public:
  Ticker(Loop& loop, std::chrono::milliseconds period);

  // Adds a listener; the caller keeps ownership. Does nothing if the listener has been added already.
  void add(TickListener& listener);

 private:
  static constexpr std::size_t kSlotCount = 16;  // parts of the period; each listener belongs to one
  // Listeners that are ticked per turn; further listeners of the slot are ticked in later turns.
  static constexpr std::size_t kTicksPerTurn = 1'000;
  using List = boost::intrusive::list<TickListener, boost::intrusive::constant_time_size<false>>;

  void arm();
  void tick_slot();

  Timer timer_;
  std::chrono::milliseconds step_;  // time between the ticks of two slots
  std::array<List, kSlotCount> slots_;
  bool slot_started_ = false;     // the first slice of the current slot has been ticked
  List due_listeners_;            // listeners of the current slot that are not ticked yet
  std::size_t current_slot_ = 0;  // modulo kSlotCount: the slot that is ticked next
  std::size_t next_slot_ = 0;     // modulo kSlotCount: the slot of the next listener that is added
};

}  // namespace fairlead::transport
