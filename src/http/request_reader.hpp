// RequestReader: takes the bytes of a connection apart into requests, strictly. What two programs could read
// in two ways (a length given twice, a line end of one byte, a folded line, …) is refused, so that nobody can
// smuggle a request past a proxy in front of us. Sans I/O.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "fairlead/http/server.hpp"
#include "http/chunk_decoder.hpp"

namespace fairlead::http {

class RequestReader {
 public:
  // Why a request is answered before anybody has seen it. The connection ends with that answer: where the
  // next request would begin is no longer known.
  struct Refusal {
    int status = 400;
    std::string message;
  };
  enum class State : std::uint8_t { idle, head, body, complete, refused };

  RequestReader(std::size_t max_header_bytes, std::size_t max_body_bytes)
      : max_header_bytes_(max_header_bytes), max_body_bytes_(max_body_bytes) {}

  // Takes as much as belongs to the present request and returns how much that was.
  std::size_t feed(std::string_view bytes);
  // The same, but stops before the body, in state `body`: feed() takes the rest.
  std::size_t feed_until_body(std::string_view bytes);
  // body: how much feed() of so many bytes may add to what is buffered. 0 if they hold the whole body.
  std::size_t would_buffer(std::size_t bytes) const noexcept {
    if (chunks_) return bytes;
    const std::size_t left = body_size_ - body_.size();
    return body_.empty() && bytes >= left ? 0 : std::min(bytes, left);
  }
  State state() const noexcept { return state_; }
  const Refusal& refusal() const noexcept { return refusal_; }

  // How much of a body of known length is missing. fill() lets it be read to where it stays: `read` gets a
  // span and returns how much of it it has filled.
  std::size_t missing() const noexcept {
    return state_ == State::body && !chunks_ ? body_size_ - body_.size() : 0;
  }
  template <class Read>
  void fill(std::size_t room, Read&& read) {
    const std::size_t have = body_.size();
    body_.resize_and_overwrite(have + room, [&](char* data, std::size_t) {
      return have + read(std::span<char>(data + have, room));
    });
    if (body_.size() == body_size_) state_ = State::complete;
  }
  std::size_t body_bytes() const noexcept { return body_.size(); }
  // Bytes of memory that everything but the body occupies: an incomplete head or line of chunks, and what was
  // parsed.
  std::size_t head_capacity() const noexcept {
    return head_.capacity() + capacity_of_head(request_) + authority_.capacity() +
           (chunks_ ? chunks_->line_capacity() : 0);
  }
  static std::size_t capacity_of_head(const Request& request) noexcept {
    return request.method.capacity() + request.target.capacity() + request.headers.capacity();
  }
  // An empty string with memory, for a long body; used when it is larger than what there is.
  void lend(std::string memory);

  // The client waits for 100 Continue before it sends the body.
  bool wants_continue() const noexcept { return state_ == State::body && wants_continue_; }
  void continued() noexcept { wants_continue_ = false; }

  // body or complete: the request as far as its head goes.
  Request& head() noexcept { return request_; }

  // complete: hands the request over; whether the connection stays open is known until the next feed().
  void take(Request& into);
  bool keep_alive() const noexcept { return keep_alive_; }
  bool http_1_0() const noexcept { return http_1_0_; }
  // The authority the request is for: of an absolute target, or else of Host. Valid until take().
  const std::string& authority() const noexcept { return authority_; }

  // Frees all memory. Nothing is fed afterwards.
  void release();

  // Ends it, for a reason that may lie elsewhere (a timeout). Returns false, for whoever returns that.
  bool refuse(int status, std::string message);

 private:
  std::size_t feed_head(std::string_view bytes);
  std::size_t feed_body(std::string_view bytes);
  std::size_t feed_chunks(std::string_view bytes);
  void begin();
  bool parse_head(std::string_view head);
  bool parse_request_line(std::string_view line);
  bool parse_target(std::string_view method, std::string_view target);
  bool parse_field(std::string_view line);
  bool known_field(std::string_view name, std::string_view value);
  bool check_fields();
  bool take_length(std::string_view value);
  bool take_coding(std::string_view value);
  void take_connection(std::string_view value);

  std::size_t max_header_bytes_;
  std::size_t max_body_bytes_;
  State state_ = State::idle;
  Refusal refusal_;

  std::string head_;         // the beginning of a head whose end has not come yet
  std::size_t scanned_ = 0;  // of it: no end before this
  Request request_;
  std::string authority_;
  std::string body_;
  std::size_t body_size_ = 0;
  std::optional<ChunkDecoder> chunks_;
  // What the head said.
  std::optional<std::size_t> length_;
  unsigned hosts_ = 0;
  bool chunked_ = false;
  bool absolute_ = false;
  bool http_1_0_ = false;
  bool keep_alive_ = true;
  bool wants_continue_ = false;
};

}  // namespace fairlead::http
