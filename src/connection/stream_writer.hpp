// StreamWriter: writes a queue of bytes to a ByteStream with gathered writes. When the stream would block, it
// waits until the stream is writable. The output fails if no byte can be written for `write_stall`. Private
// to the library.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "connection/byte_stream.hpp"
#include "connection/write_stall_timer.hpp"
#include "fairlead/loop/loop.hpp"
#include "rpc/write_queue.hpp"

namespace fairlead {

class StreamWriter {
 public:
  // The connection that contains the writer. Called on the loop thread.
  class Owner {
   public:
    virtual ~Owner() = default;

    // Returns a reference to the owner, which every outstanding callback keeps, so that the owner stays
    // alive. An owner that closes the stream before its destruction and never calls flush_soon() may return
    // null.
    virtual std::shared_ptr<void> lifetime() = 0;
    // Called after each attempt to write, including a failed one.
    virtual void on_written() = 0;
    // Called once; nothing is written after it. `reason` is `closed` if the remote peer has closed its end,
    // `timeout` if it has read nothing for `write_stall`, and otherwise the error of the stream.
    virtual void on_output_failed(Error reason) = 0;
    // Called after a flush that ran as a callback: the stream became writable, or flush_soon() was called.
    virtual void on_flushed() {}
  };

  // The owner adds the output to `queue`. `name` is the name of the remote peer in errors. A `write_stall` of
  // 0 means no limit. REQUIRES: `queue`, `stream` and `owner` outlive the writer, or stop() is called before
  // they are destroyed.
  StreamWriter(Loop& loop, Owner& owner, rpc::ByteQueue& queue, ByteStream& stream, std::string name,
               std::chrono::milliseconds write_stall);

  // Writes the queued bytes, at most about 4 MiB per call, so that a fast reader cannot starve the loop. Does
  // nothing while the stream is not writable.
  void flush();
  // Posts a flush to the loop, which writes all bytes that are queued when it runs.
  void flush_soon();
  // Writes as much as possible without waiting, for the last bytes before stop(). Errors are not reported.
  void write_remaining();
  // Stops writing. The writer cannot be used again.
  void stop() noexcept;

  // Returns whether queued bytes wait until the stream is writable.
  bool blocked() const noexcept { return stream_ && stream_->waiting_to_write(); }
  const std::string& name() const noexcept { return name_; }
  std::chrono::milliseconds write_stall() const noexcept { return stall_timer_.limit(); }
  void set_write_stall(std::chrono::milliseconds limit) noexcept { stall_timer_.set_limit(limit); }

 private:
  std::shared_ptr<StreamWriter> self() { return {owner_.lifetime(), this}; }
  ByteStream::IoResult write_queued(std::uint64_t until_position);
  void flush_as_callback();
  void fail(Error reason);

  Loop& loop_;
  Owner& owner_;
  rpc::ByteQueue& queue_;
  ByteStream* stream_;  // null: stopped
  std::string name_;
  WriteStallTimer stall_timer_;
  bool flush_posted_ = false;
};

}  // namespace fairlead
