// StreamPump: moves bytes between a ByteStream and the connection that owns it. Input is read in turns of
// bounded length, when the owner wants it; output is written by a StreamWriter. Private to the library.
#pragma once

#include <chrono>
#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string>

#include "connection/byte_stream.hpp"
#include "connection/stream_writer.hpp"
#include "fairlead/loop/loop.hpp"
#include "rpc/write_queue.hpp"

namespace fairlead {

class StreamPump {
 public:
  // One stream is read at most this often, and for at most about this many bytes, before the other callbacks
  // of the loop run. A peer that sends without pause would starve them otherwise.
  static constexpr int kReadsPerTurn = 16;
  static constexpr std::size_t kBytesPerTurn = 256u << 10;
  // For owners that bound their turns by what they make of the bytes.
  static constexpr std::size_t kAnyBytes = std::numeric_limits<std::size_t>::max();

  class Owner : public StreamWriter::Owner {
   public:
    // One step of a turn: reads once, handles what was read, flushes. Returns whether another step may
    // follow at once.
    virtual bool read_once() = 0;
    // The turn is over; the owner decides what it waits for next. What is queued by then is flushed.
    virtual void on_turn_end() = 0;
    // A step threw std::bad_alloc. Called before on_turn_end().
    virtual void on_out_of_memory() = 0;
  };

  // See StreamWriter for `owner`, `queue`, `name` and `write_stall`.
  StreamPump(Loop& loop, Owner& owner, rpc::ByteQueue& queue, std::unique_ptr<ByteStream> stream,
             std::string name, std::chrono::milliseconds write_stall,
             std::size_t bytes_per_turn = kBytesPerTurn);

  bool open() const noexcept { return stream_ != nullptr; }
  bool in_turn() const noexcept { return in_turn_; }
  bool blocked() const noexcept { return writer_.blocked(); }
  const std::string& name() const noexcept { return writer_.name(); }

  // Reads once, at the expense of the turn. `ended` after close().
  ByteStream::Io read(std::span<char> into) {
    if (!stream_) return ByteStream::Io{ByteStream::State::ended, 0, nullptr};
    const ByteStream::Io io = stream_->read(into);
    turn_bytes_ += io.bytes;
    return io;
  }
  // A turn begins when the stream is readable. Does nothing within a turn, and while it waits already.
  void wait_for_input();
  // A turn begins after the callbacks that wait for the loop now: for input that was read and is not handled.
  void run_soon();
  // The same in the fair queue of the loop: other clients have their turns before.
  void run_in_turn_of(FairQueue::Client client);
  // Runs a turn of steps, as described for read_once(): the owner's, or others. REQUIRES: the caller keeps
  // the owner alive.
  void run_turn();
  template <class Step>
  void run_turn(Step step);

  // Within a turn flush_soon() leaves it to the end of the turn.
  void flush() { writer_.flush(); }
  void flush_soon() {
    if (!in_turn_) writer_.flush_soon();
  }
  // Writes what the stream takes at once, then shuts the output.
  void finish_output();
  // Nothing more is written, and the peer sees an end.
  void shut_output();
  // No callback is made by the stream from here on. What is queued stays in the queue.
  void close();
  // Hands the stream over, without callbacks.
  std::unique_ptr<ByteStream> release();

 private:
  Loop::Callback posted_run();
  std::shared_ptr<StreamPump> self() { return {owner_.lifetime(), this}; }

  Loop& loop_;
  Owner& owner_;
  rpc::ByteQueue& queue_;
  std::unique_ptr<ByteStream> stream_;  // null: closed or released
  StreamWriter writer_;
  std::size_t bytes_per_turn_;
  std::size_t turn_bytes_ = 0;  // read in the turn under way
  bool in_turn_ = false;
  bool run_posted_ = false;
};

template <class Step>
void StreamPump::run_turn(Step step) {
  loop_.turns().label(name());
  in_turn_ = true;
  turn_bytes_ = 0;
  try {
    for (int round = 0; round < kReadsPerTurn && turn_bytes_ < bytes_per_turn_ && stream_; ++round) {
      if (!step()) break;
    }
  } catch (const std::bad_alloc&) {
    owner_.on_out_of_memory();
  }
  in_turn_ = false;
  owner_.on_turn_end();
  if (!queue_.empty()) writer_.flush_soon();
}

}  // namespace fairlead
