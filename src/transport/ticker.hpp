// Ticker: looks after what lives long, every now and then: keep-alive comments, idle sessions, requests that
// take too long. One timer for all of it; those on it have their turns spread out. Private to the layer.
#pragma once

#include <array>
#include <boost/intrusive/list.hpp>
#include <chrono>

#include "fairlead/loop/timer.hpp"

namespace fairlead::transport {

// Leaves its ticker when it is destroyed.
class Ticked
    : public boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  // Once in every period. May destroy itself and others.
  virtual void tick(Clock::time_point now) = 0;

 protected:
  ~Ticked() = default;
};

class Ticker {
 public:
  Ticker(Loop& loop, std::chrono::milliseconds period);

  void add(Ticked& one);

 private:
  static constexpr std::size_t kSlots = 16;
  static constexpr std::size_t kTickedPerTurn = 1'000;  // the rest of a slot is ticked in later turns
  using List = boost::intrusive::list<Ticked, boost::intrusive::constant_time_size<false>>;

  void arm();
  void turn();

  Timer timer_;
  std::chrono::milliseconds step_;
  std::array<List, kSlots> slots_;
  bool in_slot_ = false;  // the slot whose turn it is has been begun
  List due_;              // what is left of it
  std::size_t now_ = 0;   // whose turn is next
  std::size_t next_ = 0;  // where the next one joins
};

}  // namespace fairlead::transport
