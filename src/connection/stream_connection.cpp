#include "connection/stream_connection.hpp"

#include <algorithm>
#include <array>

#include "connection/descriptor_stream.hpp"
#include "fairlead/base/buffer_cache.hpp"
#include "fairlead/rpc/codes.hpp"

namespace fairlead {

namespace {

// The rest of a partial frame of at least this size is read into its own buffer, not into the scratch buffer.
constexpr std::size_t kMinDirectReadBytes = 64u << 10;
constexpr std::size_t kMaxReadBytes = 1u << 20;
// The maximum number of frames that one turn decodes, so that the loop can serve others.
constexpr std::size_t kMaxFramesPerTurn = 500;

// Returns a malformed message for a framing error, to which a peer responds with a parse error.
rpc::Message framing_error_message(Error error) {
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
      http_excluded_(!options_.reject_http),
      queue_(options_.framing),
      pump_(loop, *this, queue_,
            std::make_unique<DescriptorStream>(std::move(in), std::move(out), options_.description),
            options_.description, options_.limits.write_stall, StreamPump::kUnlimitedBytes) {}

// ---- reading ---------------------------------------------------------------------------------------------

void StreamConnection::request_input() {
  if (!pump_.in_turn()) wait_for_input();
}

void StreamConnection::wait_for_input() {
  if (input_ended_ || close_reason()) return;
  if (undecoded_) return pump_.run_turn_soon();
  pump_.wait_for_input();
}

// Reads once, delivers the frames and resumes the receiver, which handles them. Then one write sends the
// responses. Returns whether to read again at once: if the read returned several frames, more input
// has often arrived by then, and another read is cheaper than waiting for readiness.
bool StreamConnection::read_once() {
  if (discarding_input_) return discard_input();
  frames_read_ = 0;
  const ReadOutcome outcome = read_frames();
  const bool several_frames = frames_read_ > 1;
  wake_receiver();
  pump_.flush();
  if (outcome == ReadOutcome::ended || close_reason() || !receiver_waiting() || turn_is_over()) return false;
  return several_frames || outcome == ReadOutcome::more;
}

void StreamConnection::on_turn_end() {
  frames_in_turn_ = 0;
  if (discarding_input_) return pump_.wait_for_input();
  if (receiver_waiting()) wait_for_input();
}

void StreamConnection::on_out_of_memory() {
  fail(Error(ErrorKind::resource_exhausted,
             "resource exhausted: out of memory for a message from " + description()));
}

bool StreamConnection::turn_is_over() const noexcept {
  return frames_in_turn_ >= kMaxFramesPerTurn;
}

StreamConnection::ReadOutcome StreamConnection::read_frames() {
  if (undecoded_) {
    if (receiver_waiting()) decode_partial();
    return input_ended_ ? ReadOutcome::ended : ReadOutcome::more;
  }
  return partial_.size() < kMinDirectReadBytes && missing_bytes_ < kMinDirectReadBytes
             ? read_into_scratch_buffer()
             : read_into_partial();
}

StreamConnection::ReadOutcome StreamConnection::read_into_scratch_buffer() {
  const std::span<char> scratch = loop().scratch_buffer();
  const ByteStream::IoResult io = pump_.read(scratch);
  if (io.status != ByteStream::IoStatus::ok) return on_nothing_read(io);
  const std::string_view input(scratch.data(), io.bytes);
  if (!http_excluded_ && detect_http(partial_.empty() ? input : partial_ + std::string(input)))
    return reject_http();
  if (partial_.empty()) {
    const std::string_view rest = input.substr(decode(input));
    detail::reserve_buffer(partial_, rest.size());
    partial_ = rest;
  } else {
    partial_ += input;
    decode_partial();
  }
  if (input.size() < scratch.size()) return ReadOutcome::drained;
  loop().grow_scratch_buffer();
  return ReadOutcome::more;
}

StreamConnection::ReadOutcome StreamConnection::read_into_partial() {
  const std::size_t have = partial_.size();
  if (partial_.capacity() < kMaxReadBytes) {
    std::string larger = detail::acquire_largest_buffer();
    if (larger.capacity() > partial_.capacity()) {
      larger += partial_;
      partial_.swap(larger);
    }
    detail::release_large_buffer(larger);
  }
  // The buffer grows with the bytes received and not with the announced length, which may be false.
  const std::size_t growth = std::clamp(have, kMinDirectReadBytes, kMaxReadBytes);
  const std::size_t room = missing_bytes_ > 0 ? std::min(missing_bytes_, growth) : growth;
  detail::reserve_buffer(partial_, have + room);
  ByteStream::IoResult io;
  partial_.resize_and_overwrite(have + room, [&](char* data, std::size_t) {
    io = pump_.read(std::span(data + have, room));
    return have + io.bytes;
  });
  if (io.status != ByteStream::IoStatus::ok) return on_nothing_read(io);
  decode_partial();
  return io.bytes < room ? ReadOutcome::drained : ReadOutcome::more;
}

StreamConnection::ReadOutcome StreamConnection::on_nothing_read(const ByteStream::IoResult& io) {
  if (io.status == ByteStream::IoStatus::again) return ReadOutcome::drained;
  input_ended_ = true;
  if (io.error) {
    on_stream_lost(*io.error);
  } else {
    end_of_stream();
  }
  return ReadOutcome::ended;
}

// Returns whether the connection begins with an HTTP request. Sets http_excluded_ if it certainly does not.
// Returns false and stays undecided while the bytes are a proper prefix of an HTTP method name, which cannot
// contain a frame.
bool StreamConnection::detect_http(std::string_view first_bytes) {
  constexpr std::array<std::string_view, 10> kMethods = {
      "GET ", "HEAD ", "POST ", "PUT ", "DELETE ", "CONNECT ", "OPTIONS ", "TRACE ", "PATCH ", "PRI "};
  const bool open =
      std::ranges::any_of(kMethods, [&](std::string_view method) { return method.starts_with(first_bytes); });
  http_excluded_ = !open;
  return std::ranges::any_of(kMethods,
                             [&](std::string_view method) { return first_bytes.starts_with(method); });
}

StreamConnection::ReadOutcome StreamConnection::reject_http() {
  input_ended_ = true;
  on_stream_lost(Error(ErrorKind::parse, options_.description +
                                             " sent an HTTP request; this port speaks JSON-RPC with " +
                                             std::string(rpc::to_string(options_.framing)) + " framing"));
  return ReadOutcome::ended;
}

void StreamConnection::end_of_stream() {
  rpc::Decoder::Step last = decoder_->finish(partial_);
  if (last.status == rpc::Decoder::Status::frame) handle_step(last);
  Error reason = last.error ? std::move(*last.error)
                            : Error(ErrorKind::closed, options_.description + " closed the connection");
  partial_.clear();
  if (options_.responds_after_eof) {
    end_input(std::move(reason));
  } else {
    on_stream_lost(std::move(reason));
  }
}

void StreamConnection::on_stream_lost(Error reason) {
  fail(std::move(reason));
}

// Decodes the frames in `input` and returns how many bytes were consumed.
std::size_t StreamConnection::decode(std::string_view input) {
  std::size_t done = 0;
  bool more = true;
  while (more && !turn_is_over()) {
    const rpc::Decoder::Step step = decoder_->next(input.substr(done));
    done += step.consumed;
    missing_bytes_ = step.bytes_needed;
    more = handle_step(step);
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
    missing_bytes_ = step.bytes_needed;
    if (step.status == rpc::Decoder::Status::frame && adopt_large_frame(step.frame, done)) {
      done = 0;
      continue;
    }
    more = handle_step(step);
  }
  undecoded_ = more;
  if (done == partial_.size()) {
    partial_.clear();
    detail::release_large_buffer(partial_);
  } else {
    partial_.erase(0, done);
  }
}

// If the frame fills most of the buffer partial_, delivers the buffer itself as the frame instead of a copy.
// Otherwise returns false and does nothing.
bool StreamConnection::adopt_large_frame(std::string_view frame, std::size_t consumed) {
  if (frame.size() < kMinDirectReadBytes || 4 * frame.size() < partial_.capacity()) return false;
  const auto at = static_cast<std::size_t>(frame.data() - partial_.data());
  const std::size_t left = partial_.size() - consumed;
  std::string rest = left < kMinDirectReadBytes ? std::string() : detail::acquire_largest_buffer();
  detail::reserve_buffer(rest, left);
  rest.append(partial_, consumed);
  const Bytes whole = Bytes::adopt(std::move(partial_));
  partial_ = std::move(rest);
  deliver_frame(whole.part(whole.view().substr(at, frame.size())), options_.limits);
  return true;
}

// Delivers the frame or the error of a decoder step. Returns whether decoding can continue.
bool StreamConnection::handle_step(const rpc::Decoder::Step& step) {
  if (step.status == rpc::Decoder::Status::incomplete) return false;
  ++frames_read_;
  ++frames_in_turn_;
  switch (step.status) {
    case rpc::Decoder::Status::frame:
      on_frame(step.frame);
      deliver_frame(Bytes::copy_of(step.frame), options_.limits);
      return true;
    case rpc::Decoder::Status::rejected:
      deliver(rpc::Message::too_large(*step.error, step.frame));
      return true;
    case rpc::Decoder::Status::broken:
      input_ended_ = true;
      deliver(framing_error_message(*step.error));  // so that a server can respond with the error
      end_input(*step.error);
      return false;
    case rpc::Decoder::Status::incomplete: break;  // handled above
  }
  return false;
}

// ---- writing ---------------------------------------------------------------------------------------------

Result<void> StreamConnection::enqueue(const rpc::Rope& message, WriteWaiter* waiter, RelatedRequest) {
  Result<void> pushed = queue_.push(message);
  if (!pushed) return pushed;
  if (waiter) waiter->until = queue_.queued_position();
  pump_.flush_soon();
  return {};
}

std::uint64_t StreamConnection::position_at_backlog(std::size_t bytes) const noexcept {
  return queue_.queued_position() - std::min<std::uint64_t>(bytes, queue_.queued_position());
}

void StreamConnection::release() {
  pump_.close();
  detail::release_buffer(partial_);
}

void StreamConnection::close_output_and_discard_input() {
  discarding_input_ = true;
  pump_.shutdown_output();
  detail::release_buffer(partial_);
  pump_.wait_for_input();
}

bool StreamConnection::discard_input() {
  const ByteStream::IoStatus state = pump_.read(loop().scratch_buffer()).status;
  if (state == ByteStream::IoStatus::ended || state == ByteStream::IoStatus::failed) pump_.close();
  return state == ByteStream::IoStatus::ok;
}

}  // namespace fairlead
