// StreamConnection: messages over a byte stream (pipe, socket), in one of the three framings. One read yields
// many messages; many queued messages leave in one write; an idle connection holds no buffer.
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
  // Whether the other side may still want our answers after it has finished sending: true where we serve (a
  // pipe, a half-closed socket), false where we call.
  bool answers_after_eof = false;
  // Ends the connection if the first bytes are those of an HTTP request. A web page can make a browser send
  // one to any port, with lines of JSON as its body.
  bool refuse_http = false;
};

class StreamConnection : public Connection, private StreamPump::Owner {
 public:
  // `out` may be empty: then `in` is used both ways.
  static Result<std::shared_ptr<StreamConnection>> create(Loop& loop, UniqueFd in, UniqueFd out,
                                                          StreamOptions options);

  std::size_t backlog() const noexcept override { return queue_.bytes(); }
  std::uint64_t written_position() const noexcept override { return queue_.written(); }
  std::string description() const override { return options_.description; }

 protected:
  StreamConnection(Loop& loop, Descriptor in, std::optional<Descriptor> out, StreamOptions options);

  Result<void> enqueue(const rpc::Rope& message, Waiter* waiter, Concerning concerning) override;
  std::uint64_t position_at_backlog(std::size_t bytes) const noexcept override;
  void want_input() override;
  void release() override;

  // The stream has ended or broken, for `reason`. The default closes; a child's connection finds out more
  // first.
  virtual void lost(Error reason);

  // For what must see its output taken until it ends: closes our end of its input, reads on and forgets what
  // it reads.
  void close_output_and_discard_input();
  void close_input() { pump_.close(); }

  // Whether bytes that were read are not decoded yet, because the turn was over.
  bool has_undecoded_input() const noexcept { return undecoded_; }

  const StreamOptions& options() const noexcept { return options_; }

 private:
  enum class Got : std::uint8_t { more, drained, ended };

  // StreamPump::Owner.
  std::shared_ptr<void> lifetime() override { return shared_from_this(); }
  bool read_once() override;
  void on_turn_end() override;
  void on_out_of_memory() override;
  void on_written() override { notify_written(queue_.written()); }
  void on_output_failed(Error reason) override { lost(std::move(reason)); }

  void wait_for_input();
  bool discard();
  Got read_frames();
  Got read_into_scratch();
  Got read_into_partial();
  Got nothing_read(const ByteStream::Io& io);
  void end_of_stream();
  bool is_http(std::string_view first_bytes);
  Got refuse_http();
  bool turn_is_over() const noexcept;
  std::size_t decode(std::string_view input);
  void decode_partial();
  bool adopt_large_frame(std::string_view frame, std::size_t consumed);
  bool take_step(const rpc::Decoder::Step& step);

  StreamOptions options_;
  std::unique_ptr<rpc::Decoder> decoder_;
  std::string partial_;             // the beginning of a frame whose end has not come yet
  std::size_t want_ = 0;            // how much of it is missing, where that is known
  std::size_t frames_read_ = 0;     // by the read under way
  std::size_t frames_in_turn_ = 0;  // by the turn under way
  bool undecoded_ = false;          // frames may be left in partial_ because the turn was over
  bool http_ruled_out_ = false;
  bool input_ended_ = false;
  bool discarding_ = false;  // closed; what still comes is read and forgotten
  rpc::WriteQueue queue_;
  StreamPump pump_;
};

}  // namespace fairlead
