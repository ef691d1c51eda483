// StreamWriter: writes a queue of bytes to a ByteStream. Everything that is queued leaves in one gathered
// write; what the stream does not take waits until it is writable; a peer that takes nothing for
// `write_stall` is given up. Private to the library.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "connection/byte_stream.hpp"
#include "connection/write_stall.hpp"
#include "fairlead/loop/loop.hpp"
#include "rpc/write_queue.hpp"

namespace fairlead {

class StreamWriter {
 public:
  // The connection that the writer is a member of. Called on the loop thread.
  class Owner {
   public:
    virtual ~Owner() = default;

    // Held by every callback that is outstanding. Empty for an owner that closes the stream before it is
    // destroyed, and that never calls flush_soon().
    virtual std::shared_ptr<void> lifetime() = 0;
    // Called after each attempt to write, also after the one that failed.
    virtual void on_written() = 0;
    // Called once; nothing is written from then on. Kind closed: the peer no longer reads. timeout: it has
    // read nothing for `write_stall`. Otherwise the error of the stream.
    virtual void on_output_failed(Error reason) = 0;
    // Called after a flush that the loop began: because the stream was writable again, or by flush_soon().
    virtual void on_flushed() {}
  };

  // The owner puts into `queue` what is to be written. `queue`, `stream` and `owner` outlive the writer, or
  // stop() is called before they end. `name` is the peer's, for errors. `write_stall` 0: no limit.
  StreamWriter(Loop& loop, Owner& owner, rpc::ByteQueue& queue, ByteStream& stream, std::string name,
               std::chrono::milliseconds write_stall);

  // Writes what is queued, at most about 4 MiB at a time, so that a fast reader cannot starve the loop.
  // Returns at once while the stream takes nothing.
  void flush();
  // Flushes in the next turn of the loop, with all that is queued by then.
  void flush_soon();
  // Writes what the stream takes at once. Neither waits nor reports; for the last bytes before stop().
  void write_rest();
  // Nothing is written from now on.
  void stop() noexcept;

  // Whether queued bytes wait until the stream is writable.
  bool blocked() const noexcept { return stream_ && stream_->waiting_to_write(); }
  const std::string& name() const noexcept { return name_; }
  std::chrono::milliseconds write_stall() const noexcept { return stall_.limit(); }
  void set_write_stall(std::chrono::milliseconds limit) noexcept { stall_.set_limit(limit); }

 private:
  std::shared_ptr<StreamWriter> self() { return {owner_.lifetime(), this}; }
  ByteStream::Io write_queued(std::uint64_t until);
  void flush_by_loop();
  void fail(Error reason);

  Loop& loop_;
  Owner& owner_;
  rpc::ByteQueue& queue_;
  ByteStream* stream_;  // null: stopped
  std::string name_;
  WriteStall stall_;
  bool flush_posted_ = false;
};

}  // namespace fairlead
