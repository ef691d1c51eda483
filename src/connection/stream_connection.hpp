// StreamConnection: a connection over a byte stream (pipe, socket) in one of the three framings. One read can
// return many messages, many queued messages are sent by one write, and an idle connection has no buffer.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "connection/stream_pump.hpp"
#include "fairlead/base/limits.hpp"
#include "fairlead/base/log.hpp"
#include "fairlead/loop/descriptor.hpp"
#include "fairlead/peer/connection.hpp"
#include "fairlead/rpc/framing.hpp"
#include "rpc/write_queue.hpp"

namespace fairlead {

struct StreamOptions {
  rpc::Framing framing = rpc::Framing::line;
  rpc::FramingErrorPolicy on_framing_error = rpc::FramingErrorPolicy::close;
  Limits limits;
  Log log;
  std::string description;
  // Whether the remote peer may still read responses after it has finished sending (pipe, half-closed
  // socket): true for connections to clients, false for connections to servers.
  bool responds_after_eof = false;
  // Closes the connection if its first bytes are an HTTP request. A web page can make a browser send one to
  // any port, with lines of JSON as its body.
  bool reject_http = false;
};

class StreamConnection : public Connection, private StreamPump::Owner {
 public:
  // If `out` is empty, `in` is used for both directions.
  static Result<std::shared_ptr<StreamConnection>> create(Loop& loop, UniqueFd in, UniqueFd out,
                                                          StreamOptions options);

  std::size_t backlog() const noexcept override { return queue_.unwritten_bytes(); }
  std::uint64_t written_position() const noexcept override { return queue_.written_position(); }
  std::string description() const override { return options_.description; }

 protected:
  StreamConnection(Loop& loop, Descriptor in, std::optional<Descriptor> out, StreamOptions options);

  Result<void> enqueue(const rpc::Rope& message, WriteWaiter* waiter,
                       RelatedRequest related_request) override;
  std::uint64_t position_at_backlog(std::size_t bytes) const noexcept override;
  void request_input() override;
  void release() override;

  // Called when the stream has ended or failed. The default closes the connection for `reason`;
  // ChildConnection waits for the exit status first.
  virtual void on_stream_lost(Error reason);

  // Called with each frame before it is delivered.
  virtual void on_frame(std::string_view frame) { static_cast<void>(frame); }
  // Returns whether the remote peer has read nothing of what was sent; false if that is unknown.
  bool output_is_unread() const {
    const std::optional<std::size_t> unread = pump_.unread_output();
    return unread && *unread >= written_position();
  }

  // Closes the output, but continues to read and discards the input. Otherwise the remote process could be
  // blocked by a full pipe, or killed by SIGPIPE, while it shuts down.
  void close_output_and_discard_input();
  void close_stream() { pump_.close(); }

  // Returns whether the end of the input was read.
  bool input_ended() const noexcept { return input_ended_; }
  // Returns whether input was read that is not decoded yet, because the turn had reached its limit.
  bool has_undecoded_input() const noexcept { return undecoded_; }

  const StreamOptions& options() const noexcept { return options_; }

 private:
  enum class ReadOutcome : std::uint8_t {
    more,     // there may be more input
    drained,  // no more input at the moment
    ended,    // the stream has ended or failed
  };

  // StreamPump::Owner.
  std::shared_ptr<void> lifetime() override { return shared_from_this(); }
  bool read_once() override;
  void on_turn_end() override;
  void on_out_of_memory() override;
  void on_written() override { notify_written(queue_.written_position()); }
  void on_output_failed(Error reason) override { on_stream_lost(std::move(reason)); }

  void wait_for_input();
  bool discard_input();
  ReadOutcome read_frames();
  ReadOutcome read_into_scratch_buffer();
  ReadOutcome read_into_partial();
  ReadOutcome on_nothing_read(const ByteStream::IoResult& io);
  void end_of_stream();
  bool detect_http(std::string_view first_bytes);  // also sets http_excluded_
  ReadOutcome reject_http();
  bool turn_is_over() const noexcept;
  std::size_t decode(std::string_view input);
  void decode_partial();
  bool adopt_large_frame(std::string_view frame, std::size_t consumed);
  bool handle_step(const rpc::Decoder::Step& step);

  StreamOptions options_;
  std::unique_ptr<rpc::Decoder> decoder_;
  std::string partial_;             // the beginning of a frame that is not complete yet
  std::size_t missing_bytes_ = 0;   // bytes missing from the frame in `partial_`; 0 if unknown
  std::size_t frames_read_ = 0;     // frames of the current read
  std::size_t frames_in_turn_ = 0;  // frames of the current turn
  bool undecoded_ = false;          // see has_undecoded_input(); the input is in partial_
  bool http_excluded_ = false;      // the first bytes are not an HTTP request
  bool input_ended_ = false;
  bool discarding_input_ = false;  // closed; further input is read and discarded
  rpc::WriteQueue queue_;
  StreamPump pump_;
};

}  // namespace fairlead
