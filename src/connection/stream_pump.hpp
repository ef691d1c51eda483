// StreamPump: reads and writes the ByteStream of a connection. Input is read on request of the owner, in
// turns of bounded length; output is written by a StreamWriter. Private to the library.
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
  // The limits of one turn: after this many reads, or about this many bytes, the other callbacks of the loop
  // run. A remote peer that sends without pause would starve them otherwise.
  static constexpr int kReadsPerTurn = 16;
  static constexpr std::size_t kBytesPerTurn = 256u << 10;
  // For owners that limit their turns by other means, such as the number of frames.
  static constexpr std::size_t kUnlimitedBytes = std::numeric_limits<std::size_t>::max();

  class Owner : public StreamWriter::Owner {
   public:
    // One step of a turn: reads once, handles the input, and flushes. Returns whether the turn may continue
    // with another step.
    virtual bool read_once() = 0;
    // Called at the end of a turn; the owner decides what to wait for next. Queued output is flushed
    // afterwards.
    virtual void on_turn_end() = 0;
    // Called when a step threw std::bad_alloc, before on_turn_end().
    virtual void on_out_of_memory() = 0;
  };

  // See StreamWriter for `owner`, `queue`, `name` and `write_stall`.
  StreamPump(Loop& loop, Owner& owner, rpc::ByteQueue& queue, std::unique_ptr<ByteStream> stream,
             std::string name, std::chrono::milliseconds write_stall,
             std::size_t bytes_per_turn = kBytesPerTurn);

  bool is_open() const noexcept { return stream_ != nullptr; }
  bool in_turn() const noexcept { return in_turn_; }
  // Returns whether queued output waits until the stream is writable.
  bool output_blocked() const noexcept { return writer_.blocked(); }
  // Returns the name of the remote peer.
  const std::string& name() const noexcept { return writer_.name(); }

  // Reads once; the bytes count against the limit of the turn. Returns `ended` after close().
  ByteStream::IoResult read(std::span<char> into) {
    if (!stream_) return ByteStream::IoResult{ByteStream::IoStatus::ended, 0, nullptr};
    const ByteStream::IoResult io = stream_->read(into);
    turn_bytes_ += io.bytes;
    return io;
  }
  // Waits until the stream is readable and starts a turn then. Does nothing during a turn, or if the pump is
  // already waiting.
  void wait_for_input();
  // Starts a turn after the callbacks queued on the loop now; for input that was read but not handled.
  void run_turn_soon();
  // The same in the fair queue of the loop, so that other clients are served first.
  void run_turn_in_fair_queue(FairQueue::Client client);
  // Runs a turn: calls the owner's read_once(), or `step`, until it returns false or the limits of a turn are
  // reached. REQUIRES: the caller keeps the owner alive.
  void run_turn();
  template <class Step>
  void run_turn(Step step);

  // See StreamWriter. During a turn, flush_soon() does nothing, because the turn flushes at its end.
  void flush() { writer_.flush(); }
  void flush_soon() {
    if (!in_turn_) writer_.flush_soon();
  }
  // Writes as much as possible without waiting, then shuts the output down.
  void finish_output();
  // See ByteStream; nullopt after close().
  std::optional<std::size_t> unread_output() const {
    return stream_ ? stream_->unread_output() : std::nullopt;
  }
  // Ends the output: the remote peer reads end of file.
  void shutdown_output();
  // Closes the stream: no callback runs any more. Queued output stays in the queue.
  void close();
  // Transfers ownership of the stream, without outstanding callbacks. Returns null after close().
  std::unique_ptr<ByteStream> release();

 private:
  // Returns the callback that run_turn_soon() and run_turn_in_fair_queue() post.
  Loop::Callback turn_callback();
  std::shared_ptr<StreamPump> self() { return {owner_.lifetime(), this}; }

  Loop& loop_;
  Owner& owner_;
  rpc::ByteQueue& queue_;
  std::unique_ptr<ByteStream> stream_;  // null: closed or released
  StreamWriter writer_;
  std::size_t bytes_per_turn_;
  std::size_t turn_bytes_ = 0;  // read in the current turn
  bool in_turn_ = false;
  bool turn_posted_ = false;  // a turn is posted to the loop
};

template <class Step>
void StreamPump::run_turn(Step step) {
  loop_.turn_meter().label(name());
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
