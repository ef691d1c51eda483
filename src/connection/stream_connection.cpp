#include "connection/stream_connection.hpp"

#include <algorithm>
#include <array>

#include "base/reset_string.hpp"
#include "connection/descriptor_stream.hpp"
#include "fairlead/rpc/codes.hpp"

namespace fairlead {

namespace {

constexpr std::size_t kDirectFrom = 64u
                                    << 10;  // from here a partial frame is read in place, not through scratch
constexpr std::size_t kLargestRead = 1u << 20;
// What one turn decodes at most; then other users of the loop have theirs.
constexpr std::size_t kFramesPerTurn = 500;

// Where the frame boundaries are lost, whatever the reason, the answer is a parse error.
rpc::Message parse_problem(Error error) {
  return rpc::Message::malformed(
      std::move(error).with([](ErrorDetail& detail) { detail.rpc_code = rpc::kParseError; }));
}

}  // namespace

Result<std::shared_ptr<StreamConnection>> StreamConnection::create(Loop& loop, UniqueFd in, UniqueFd out,
                                                                   StreamOptions options) {
  Result<Descriptor> input = Descriptor::adopt(loop, std::move(in));
  if (!input) return input.error();
  std::optional<Descriptor> output;
  if (out) {
    Result<Descriptor> adopted = Descriptor::adopt(loop, std::move(out));
    if (!adopted) return adopted.error();
    output = std::move(*adopted);
  }
  return std::shared_ptr<StreamConnection>(
      new StreamConnection(loop, std::move(*input), std::move(output), std::move(options)));
}

StreamConnection::StreamConnection(Loop& loop, Descriptor in, std::optional<Descriptor> out,
                                   StreamOptions options)
    : Connection(loop),
      options_(std::move(options)),
      decoder_(rpc::make_decoder(options_.framing, options_.limits, options_.on_framing_error)),
      http_ruled_out_(!options_.refuse_http),
      queue_(options_.framing),
      pump_(loop, *this, queue_,
            std::make_unique<DescriptorStream>(std::move(in), std::move(out), options_.description),
            options_.description, options_.limits.write_stall, StreamPump::kAnyBytes) {}

// ---- reading ---------------------------------------------------------------------------------------------

void StreamConnection::want_input() {
  if (!pump_.in_turn()) wait_for_input();
}

void StreamConnection::wait_for_input() {
  if (input_ended_ || reason()) return;
  if (undecoded_) return pump_.run_soon();
  pump_.wait_for_input();
}

// Reads what there is and hands it over, as long as the receiver keeps up; what its handlers answered leaves
// in one write after each read. Where messages come in bundles the next bundle is often there by then: one
// more read is cheaper than waiting for it through the loop.
bool StreamConnection::read_once() {
  if (discarding_) return discard();
  frames_read_ = 0;
  const Got got = read_frames();
  const bool bundle = frames_read_ > 1;
  wake_receiver();
  pump_.flush();
  if (got == Got::ended || reason() || !receiver_waiting() || turn_is_over()) return false;
  return bundle || got == Got::more;
}

void StreamConnection::on_turn_end() {
  frames_in_turn_ = 0;
  if (discarding_) return pump_.wait_for_input();
  if (receiver_waiting()) wait_for_input();
}

void StreamConnection::on_out_of_memory() {
  fail(Error(ErrorKind::resource_exhausted,
             "resource exhausted: out of memory for what " + description() + " sends"));
}

bool StreamConnection::turn_is_over() const noexcept {
  return frames_in_turn_ >= kFramesPerTurn;
}

StreamConnection::Got StreamConnection::read_frames() {
  if (undecoded_) {
    if (receiver_waiting()) decode_partial();
    return input_ended_ ? Got::ended : Got::more;
  }
  return partial_.size() < kDirectFrom && want_ < kDirectFrom ? read_into_scratch() : read_into_partial();
}

StreamConnection::Got StreamConnection::read_into_scratch() {
  const std::span<char> scratch = loop().scratch();
  const ByteStream::Io io = pump_.read(scratch);
  if (io.state != ByteStream::State::ok) return nothing_read(io);
  const std::string_view got(scratch.data(), io.bytes);
  if (!http_ruled_out_ && is_http(partial_.empty() ? got : partial_ + std::string(got))) return refuse_http();
  if (partial_.empty()) {
    partial_ = got.substr(decode(got));
  } else {
    partial_ += got;
    decode_partial();
  }
  if (got.size() < scratch.size()) return Got::drained;
  loop().grow_scratch();
  return Got::more;
}

StreamConnection::Got StreamConnection::read_into_partial() {
  const std::size_t have = partial_.size();
  if (partial_.capacity() < kLargestRead) {
    std::string larger = loop().large_buffer();
    if (larger.capacity() > partial_.capacity()) {
      larger += partial_;
      partial_ = std::move(larger);
    }
  }
  // Grows with what has come, not with what was announced: a length is cheap to claim.
  const std::size_t growth = std::clamp(have, kDirectFrom, kLargestRead);
  const std::size_t room = want_ > 0 ? std::min(want_, growth) : growth;
  ByteStream::Io io;
  partial_.resize_and_overwrite(have + room, [&](char* data, std::size_t) {
    io = pump_.read(std::span(data + have, room));
    return have + io.bytes;
  });
  if (io.state != ByteStream::State::ok) return nothing_read(io);
  decode_partial();
  return io.bytes < room ? Got::drained : Got::more;
}

StreamConnection::Got StreamConnection::nothing_read(const ByteStream::Io& io) {
  if (io.state == ByteStream::State::again) return Got::drained;
  input_ended_ = true;
  if (io.error) {
    lost(*io.error);
  } else {
    end_of_stream();
  }
  return Got::ended;
}

// Decides once enough bytes are there. Fewer bytes than a method has hold no frame yet.
bool StreamConnection::is_http(std::string_view first_bytes) {
  constexpr std::array<std::string_view, 10> kMethods = {
      "GET ", "HEAD ", "POST ", "PUT ", "DELETE ", "CONNECT ", "OPTIONS ", "TRACE ", "PATCH ", "PRI "};
  const bool open =
      std::ranges::any_of(kMethods, [&](std::string_view method) { return method.starts_with(first_bytes); });
  http_ruled_out_ = !open;
  return std::ranges::any_of(kMethods,
                             [&](std::string_view method) { return first_bytes.starts_with(method); });
}

StreamConnection::Got StreamConnection::refuse_http() {
  input_ended_ = true;
  lost(Error(ErrorKind::parse, options_.description +
                                   " sent an HTTP request; this port speaks JSON-RPC with " +
                                   std::string(rpc::to_string(options_.framing)) + " framing"));
  return Got::ended;
}

void StreamConnection::end_of_stream() {
  rpc::Decoder::Step last = decoder_->at_end(partial_);
  if (last.what == rpc::Decoder::What::frame) take_step(last);
  Error reason = last.error ? std::move(*last.error)
                            : Error(ErrorKind::closed, options_.description + " closed the connection");
  partial_.clear();
  if (options_.answers_after_eof) {
    end_input(std::move(reason));
  } else {
    lost(std::move(reason));
  }
}

void StreamConnection::lost(Error reason) {
  fail(std::move(reason));
}

// Decodes frame after frame and returns how much of `input` is done with.
std::size_t StreamConnection::decode(std::string_view input) {
  std::size_t done = 0;
  bool more = true;
  while (more && !turn_is_over()) {
    const rpc::Decoder::Step step = decoder_->next(input.substr(done));
    done += step.consumed;
    want_ = step.want;
    more = take_step(step);
  }
  undecoded_ = more;
  return done;
}

void StreamConnection::decode_partial() {
  std::size_t done = 0;
  bool more = true;
  while (more && !turn_is_over()) {
    const rpc::Decoder::Step step = decoder_->next(std::string_view(partial_).substr(done));
    done += step.consumed;
    want_ = step.want;
    if (step.what == rpc::Decoder::What::frame && adopt_large_frame(step.frame, done)) {
      done = 0;
      continue;
    }
    more = take_step(step);
  }
  undecoded_ = more;
  if (done == partial_.size()) {
    reset_string(partial_, kDirectFrom);
  } else {
    partial_.erase(0, done);
  }
}

// A frame that fills most of the buffer takes the buffer over instead of being copied out of it.
bool StreamConnection::adopt_large_frame(std::string_view frame, std::size_t consumed) {
  if (frame.size() < kDirectFrom || 4 * frame.size() < partial_.capacity()) return false;
  const auto at = static_cast<std::size_t>(frame.data() - partial_.data());
  const std::size_t left = partial_.size() - consumed;
  std::string rest = left < kDirectFrom ? std::string() : loop().large_buffer();
  rest.append(partial_, consumed);
  const Bytes whole = Bytes::adopt(std::move(partial_));
  loop().remember_large(whole);
  partial_ = std::move(rest);
  deliver_frame(whole.part(whole.view().substr(at, frame.size())), options_.limits);
  return true;
}

// Returns whether there may be another step.
bool StreamConnection::take_step(const rpc::Decoder::Step& step) {
  if (step.what == rpc::Decoder::What::more) return false;
  ++frames_read_;
  ++frames_in_turn_;
  switch (step.what) {
    case rpc::Decoder::What::frame: deliver_frame(Bytes::copy_of(step.frame), options_.limits); return true;
    case rpc::Decoder::What::skipped: deliver(rpc::Message::too_large(*step.error, step.frame)); return true;
    case rpc::Decoder::What::broken:
      input_ended_ = true;
      deliver(parse_problem(*step.error));  // a plain server answers it before the end
      end_input(*step.error);
      return false;
    case rpc::Decoder::What::more: break;  // handled above
  }
  return false;
}

// ---- writing ---------------------------------------------------------------------------------------------

Result<void> StreamConnection::enqueue(const rpc::Rope& message, Waiter* waiter, Concerning) {
  Result<void> pushed = queue_.push(message);
  if (!pushed) return pushed;
  if (waiter) waiter->until = queue_.pushed();
  pump_.flush_soon();
  return {};
}

std::uint64_t StreamConnection::position_at_backlog(std::size_t bytes) const noexcept {
  return queue_.pushed() - std::min<std::uint64_t>(bytes, queue_.pushed());
}

void StreamConnection::release() {
  pump_.close();
  reset_string(partial_);
}

void StreamConnection::close_output_and_discard_input() {
  discarding_ = true;
  pump_.shut_output();
  reset_string(partial_);
  pump_.wait_for_input();
}

bool StreamConnection::discard() {
  const ByteStream::State state = pump_.read(loop().scratch()).state;
  if (state == ByteStream::State::ended || state == ByteStream::State::failed) pump_.close();
  return state == ByteStream::State::ok;
}

}  // namespace fairlead
