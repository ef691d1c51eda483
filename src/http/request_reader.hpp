// RequestReader: parses the bytes of a connection into HTTP requests, one after the other. It rejects
// everything that two programs could interpret differently (two lengths, a bare LF, a folded line, …), so
// that no request can be smuggled past a proxy in front of the server. Does no I/O.
//
// Clients repeat the same head in all requests of a connection, except for the digits of Content-Length. Such
// a head is compared with the previous one instead of being parsed; see reclaim_head().
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "fairlead/base/buffer_cache.hpp"
#include "fairlead/http/server.hpp"
#include "http/chunk_decoder.hpp"

namespace fairlead::http {

class RequestReader {
 public:
  // The response to a request that is rejected before it is passed to a handler. The connection is closed
  // after this response, because it is unknown where the next request would begin.
  struct Refusal {
    int status = 400;
    std::string message;
  };
  enum class State : std::uint8_t { idle, head, body, complete, refused };

  RequestReader(std::size_t max_header_bytes, std::size_t max_body_bytes)
      : max_header_bytes_(max_header_bytes), max_body_bytes_(max_body_bytes) {}

  // Parses the bytes that belong to the current request, and returns their number. The rest belongs to later
  // requests.
  std::size_t feed(std::string_view bytes);
  // Does the same, but stops at the end of the head, with state() `body`. feed() then parses the body.
  std::size_t feed_until_body(std::string_view bytes);
  // Returns how many bytes the buffer of the body can grow by when feed() is called with `bytes` bytes.
  // Returns 0 if the bytes are the whole body, because feed() copies a body that is complete directly into
  // the request. REQUIRES: state `body`.
  std::size_t bytes_to_buffer(std::size_t bytes) const noexcept {
    if (chunk_decoder_) return bytes;
    const std::size_t left = expected_body_bytes_ - body_.size();
    return body_.empty() && bytes >= left ? 0 : std::min(bytes, left);
  }
  State state() const noexcept { return state_; }
  const Refusal& refusal() const noexcept { return refusal_; }

  // Returns how many bytes of a body with Content-Length have not arrived. Returns 0 if the body is chunked,
  // and in other states than `body`.
  std::size_t missing_body_bytes() const noexcept {
    return state_ == State::body && !chunk_decoder_ ? expected_body_bytes_ - body_.size() : 0;
  }
  // Calls `read` with a span of `room` bytes in the buffer of the body, so that input is read there without a
  // copy. `read` returns how many bytes of the span it has filled. REQUIRES: room <= missing_body_bytes().
  template <class Read>
  void fill_body(std::size_t room, Read&& read) {
    const std::size_t have = body_.size();
    detail::reserve_buffer(body_, have + room);
    body_.resize_and_overwrite(have + room, [&](char* data, std::size_t) {
      return have + read(std::span<char>(data + have, room));
    });
    if (body_.size() == expected_body_bytes_) state_ = State::complete;
  }
  std::size_t received_body_bytes() const noexcept { return body_.size(); }
  // Returns the size in bytes of the memory that is allocated for everything but the body: an incomplete head
  // or chunk line, and the parsed head.
  std::size_t head_capacity() const noexcept {
    return head_.capacity() + (request_ ? capacity_of_head(*request_) : 0) + authority_.capacity() +
           (chunk_decoder_ ? chunk_decoder_->line_capacity() : 0);
  }
  static std::size_t capacity_of_head(const Request& request) noexcept {
    return request.method.capacity() + request.target.capacity() + request.headers.capacity();
  }
  // Returns a number that changes with every head that is parsed, and stays the same for a repeated head.
  std::uint64_t head_number() const noexcept { return head_number_; }
  // Returns whether the client waits for 100 Continue before it sends the body (Expect: 100-continue).
  bool expects_continue() const noexcept {
    return state_ == State::body && expects_continue_ && !continue_sent_;
  }
  void on_continue_sent() noexcept { continue_sent_ = true; }

  // Returns the parsed request, without its body, in the states `body` and `complete`. In other states the
  // members that have not been parsed are empty.
  Request& head() {
    if (!request_) request_ = std::make_unique<Request>();
    return *request_;
  }

  // Returns the request; the reader is then ready for the next request. keep_alive() and http_1_0() still
  // describe the returned request until the next feed(). REQUIRES: state `complete`.
  std::unique_ptr<Request> extract_request();
  // Returns a request that is no longer needed to the reader, with the head_number() that it was parsed with.
  // If the next head repeats that of `request`, it is not parsed; extract_request() then returns the same
  // object, with its `attachment`. `request` is freed instead if another head was parsed since.
  void reclaim_head(std::unique_ptr<Request> request, std::uint64_t head_number) noexcept;
  bool keep_alive() const noexcept { return keep_alive_; }
  bool http_1_0() const noexcept { return http_1_0_; }
  // Returns the host and port that the request is for: those in an absolute target, otherwise those in Host.
  // Valid until extract_request().
  const std::string& authority() const noexcept { return authority_; }

  // Frees the memory that is kept for the next request. REQUIRES: state `idle`.
  void release_spare_memory() noexcept {
    request_.reset();
    keeps_head_ = false;
  }
  // Frees all memory. REQUIRES: feed() is not called afterwards.
  void release_memory();

  // Rejects the current request. The caller may do so for reasons that the parser does not know, such as a
  // timeout. Always returns false, so that the parse functions can return its result.
  bool reject(int status, std::string message);

 private:
  std::size_t feed_head(std::string_view bytes);
  std::size_t feed_body(std::string_view bytes);
  std::size_t feed_chunks(std::string_view bytes);
  void begin_request();
  // If `bytes` begins with a repetition of the previous head, continues with its body and returns the size of
  // the head; otherwise returns 0.
  std::size_t repeat_head(std::string_view bytes);
  bool parse_head(std::string_view head, std::span<const std::size_t> line_ends);
  bool parse_request_line(std::string_view line);
  bool parse_target(std::string_view method, std::string_view target);
  bool parse_field(std::string_view head, std::string_view line);
  bool apply_known_field(std::string_view head, std::string_view name, std::string_view value);
  // Checks the fields that must agree with each other, and determines how the body is delimited.
  bool check_fields_and_prepare_body();
  bool parse_content_length(std::string_view head, std::string_view value);
  bool parse_transfer_encoding(std::string_view value);
  void parse_connection(std::string_view value);

  std::size_t max_header_bytes_;
  std::size_t max_body_bytes_;
  State state_ = State::idle;
  Refusal refusal_;

  std::string head_;                  // the received part of an incomplete head
  std::size_t scanned_ = 0;           // offset in head_ of the first line without an end
  std::unique_ptr<Request> request_;  // null: none is being read, and no head is kept
  std::uint64_t head_number_ = 0;
  bool keeps_head_ = false;  // request_ has the previous head, and the facts below describe it
  std::string authority_;
  std::string body_;
  std::size_t expected_body_bytes_ = 0;          // as Content-Length says; 0 if the body is chunked
  std::unique_ptr<ChunkDecoder> chunk_decoder_;  // null: the body is not chunked
  // Facts from the head of the current request.
  std::optional<std::size_t> content_length_;
  std::size_t content_length_at_ = 0;  // position of the digits of Content-Length in the head
  std::size_t content_length_digits_ = 0;
  unsigned host_count_ = 0;
  bool chunked_ = false;
  bool absolute_target_ = false;
  bool http_1_0_ = false;
  bool keep_alive_ = true;
  bool expects_continue_ = false;
  bool continue_sent_ = false;
};

}  // namespace fairlead::http
