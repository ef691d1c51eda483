#include "http/websocket.hpp"

#include <openssl/evp.h>
#include <sys/random.h>

#include <algorithm>
#include <cstring>

#include "base/reset_string.hpp"
#include "fairlead/base/base64.hpp"
#include "json/utf8.hpp"

namespace fairlead::http::websocket {

namespace {

constexpr std::size_t kMaxControlPayloadBytes = 125;
constexpr std::size_t kMaxIdleBufferBytes = 4u << 10;  // memory that a decoder without input keeps
constexpr std::size_t kCompactThreshold = 64u << 10;   // processed bytes that may stay in input_
constexpr unsigned char kFinalBit = 0x80;
constexpr unsigned char kReservedBits = 0x70;
constexpr unsigned char kMaskBit = 0x80;

bool is_control_opcode(Opcode opcode) {
  return static_cast<unsigned>(opcode) >= 8;
}

bool is_known_opcode(unsigned opcode) {
  return opcode <= 2 || (opcode >= 8 && opcode <= 10);
}

bool is_utf8(std::string_view text) {
  const char* const end = text.data() + text.size();
  return json::find_invalid_utf8(text.data(), end) == end;
}

// Returns whether a status code is allowed in a close frame.
bool is_valid_close_code(unsigned code) {
  return (code >= 1000 && code <= 1014 && code != 1004 && code != kNoStatus && code != 1006) ||
         (code >= 3000 && code <= 4999);
}

void apply_mask(char* bytes, std::size_t size, const char (&mask)[4]) {
  std::uint32_t word = 0;
  std::memcpy(&word, mask, sizeof word);
  std::size_t i = 0;
  for (; i + sizeof word <= size; i += sizeof word) {
    std::uint32_t four = 0;
    std::memcpy(&four, bytes + i, sizeof four);
    four ^= word;
    std::memcpy(bytes + i, &four, sizeof four);
  }
  for (; i < size; ++i) bytes[i] = static_cast<char>(bytes[i] ^ mask[i % 4]);
}

void fill_random(char* bytes, std::size_t size) {
  // After the system has booted, getrandom() does not fail for so few bytes.
  while (::getrandom(bytes, size, 0) != static_cast<ssize_t>(size)) continue;
}

// Returns `frame`, which has a head of `head_size` bytes, with a random mask and the masked payload.
std::string append_masked_payload(std::string frame, std::size_t head_size, std::string_view payload) {
  char mask[4];
  fill_random(mask, sizeof mask);
  frame[1] = static_cast<char>(static_cast<unsigned char>(frame[1]) | kMaskBit);
  frame.append(mask, sizeof mask);
  frame += payload;
  apply_mask(frame.data() + head_size + sizeof mask, payload.size(), mask);
  return frame;
}

}  // namespace

// ---- reading ---------------------------------------------------------------------------------------------

void Decoder::feed(std::string_view bytes) {
  if (!finished_) input_ += bytes;
}

bool Decoder::read_head(Head& head) const {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(input_.data()) + position_;
  const std::size_t have = input_.size() - position_;
  if (have < 2) return false;
  const unsigned short_length = bytes[1] & 0x7fu;
  const std::size_t extra = short_length == 127 ? 8 : short_length == 126 ? 2 : 0;
  head.masked = (bytes[1] & kMaskBit) != 0;
  head.size = 2 + extra + (head.masked ? 4 : 0);
  head.final = (bytes[0] & kFinalBit) != 0;
  head.opcode = static_cast<Opcode>(bytes[0] & 0x0fu);
  head.length = short_length;
  // The first two bytes show most errors, so that an invalid head is rejected before the rest of the head has
  // arrived.
  if (have < head.size) {
    head.size = 0;
    return true;
  }
  if (extra > 0) {
    head.length = 0;
    for (std::size_t i = 0; i < extra; ++i) head.length = head.length << 8 | bytes[2 + i];
  }
  if (head.masked) std::memcpy(head.mask, bytes + 2 + extra, sizeof head.mask);
  return true;
}

std::optional<Decoder::Event> Decoder::check_head(const Head& head) const {
  const auto first = static_cast<unsigned char>(input_[position_]);
  const auto failure = [](std::uint16_t code, const char* why) {
    return Event{EventType::failed, why, code};
  };
  if ((first & kReservedBits) != 0) return failure(kProtocolError, "reserved bit is set");
  if (!is_known_opcode(first & 0x0fu)) return failure(kProtocolError, "unknown opcode");
  if (head.masked != (role_ == Role::server))
    return failure(kProtocolError,
                   role_ == Role::server ? "frame of a client is not masked" : "frame of a server is masked");
  if (is_control_opcode(head.opcode)) {
    if (!head.final) return failure(kProtocolError, "fragmented control frame");
    // Checks the first byte of the length, which also rejects a short length in a non-minimal encoding. The
    // outcome does not depend on how much of the head has arrived.
    if ((static_cast<unsigned char>(input_[position_ + 1]) & 0x7fu) > kMaxControlPayloadBytes)
      return failure(kProtocolError, "control frame over 125 bytes");
    return std::nullopt;
  }
  if (head.opcode == Opcode::binary) return failure(kUnsupportedData, "binary messages are not supported");
  if ((head.opcode == Opcode::continuation) != in_message_)
    return failure(kProtocolError, in_message_ ? "new message before the end of a fragmented one"
                                               : "continuation frame without a message");
  if (head.size == 0) return std::nullopt;
  const std::uint64_t length = head.length;
  const auto marker = static_cast<unsigned char>(input_[position_ + 1]) & 0x7fu;
  if ((marker == 126 && length < 126) || (marker == 127 && length < 0x10000) || length >> 63)
    return failure(kProtocolError, "payload length is not minimally encoded");
  if (head.length > max_message_bytes_ || message_.size() + head.length > max_message_bytes_)
    return Event{EventType::failed,
                 "message over max_frame_bytes (" + std::to_string(max_message_bytes_) + ")", kMessageTooBig};
  return std::nullopt;
}

Decoder::Event Decoder::next() {
  while (!finished_) {
    Head head;
    if (!read_head(head)) break;
    if (std::optional<Event> problem = check_head(head))
      return fail(problem->code, std::move(problem->payload));
    if (head.size == 0 || input_.size() - position_ - head.size < head.length) break;
    std::string payload = extract_payload(head);
    if (is_control_opcode(head.opcode)) return process_control_frame(head, std::move(payload));
    Event event = process_data_frame(head, std::move(payload));
    if (event.type != EventType::need_more) return event;
  }
  return {};
}

std::string Decoder::extract_payload(const Head& head) {
  std::string payload = input_.substr(position_ + head.size, static_cast<std::size_t>(head.length));
  position_ += head.size + payload.size();
  if (position_ == input_.size()) {
    reset_string(input_, kMaxIdleBufferBytes);
    position_ = 0;
  } else if (position_ > kCompactThreshold) {
    std::string rest(input_, position_);  // a copy, because erase() would keep the memory of a large frame
    input_.swap(rest);
    position_ = 0;
  }
  if (head.masked) apply_mask(payload.data(), payload.size(), head.mask);
  return payload;
}

Decoder::Event Decoder::process_control_frame(const Head& head, std::string payload) {
  if (head.opcode == Opcode::ping) return Event{EventType::ping, std::move(payload), 0};
  if (head.opcode == Opcode::pong) return Event{EventType::pong, std::move(payload), 0};
  if (payload.empty()) {
    finished_ = true;
    return Event{EventType::closed, {}, kNoStatus};
  }
  if (payload.size() < 2) return fail(kProtocolError, "close frame with a payload of one byte");
  const auto code = static_cast<std::uint16_t>(static_cast<unsigned char>(payload[0]) << 8 |
                                               static_cast<unsigned char>(payload[1]));
  std::string reason = payload.substr(2);
  if (!is_valid_close_code(code)) return fail(kProtocolError, "close frame with an invalid status code");
  if (!is_utf8(reason)) return fail(kInvalidPayload, "close frame with a reason that is not UTF-8");
  finished_ = true;
  return Event{EventType::closed, std::move(reason), code};
}

Decoder::Event Decoder::process_data_frame(const Head& head, std::string payload) {
  if (message_.empty()) {
    message_ = std::move(payload);
  } else {
    message_ += payload;
  }
  in_message_ = !head.final;
  if (in_message_) return {};
  std::string message = std::move(message_);
  message_ = std::string();
  if (!is_utf8(message)) return fail(kInvalidPayload, "text message is not UTF-8");
  return Event{EventType::message, std::move(message), 0};
}

Decoder::Event Decoder::fail(std::uint16_t code, std::string why) {
  finished_ = true;
  reset_string(input_);
  reset_string(message_);
  position_ = 0;
  return Event{EventType::failed, std::move(why), code};
}

// ---- writing ---------------------------------------------------------------------------------------------

std::string unmasked_frame_head(Opcode opcode, std::uint64_t length) {
  std::string head(1, static_cast<char>(kFinalBit | static_cast<unsigned>(opcode)));
  const auto put = [&head](std::uint64_t value, int bytes) {
    for (int i = bytes - 1; i >= 0; --i) head.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  };
  if (length < 126) {
    put(length, 1);
  } else if (length < 0x10000) {
    put(126, 1), put(length, 2);
  } else {
    put(127, 1), put(length, 8);
  }
  return head;
}

std::string control_frame(Role role, Opcode opcode, std::string_view payload) {
  payload = payload.substr(0, kMaxControlPayloadBytes);
  std::string frame = unmasked_frame_head(opcode, payload.size());
  if (role == Role::client) return append_masked_payload(std::move(frame), 2, payload);
  frame += payload;
  return frame;
}

std::string close_frame(Role role, std::uint16_t code, std::string_view reason) {
  if (code == kNoStatus) return control_frame(role, Opcode::close, {});
  std::string payload{static_cast<char>(code >> 8), static_cast<char>(code & 0xff)};
  payload += reason.substr(0, kMaxControlPayloadBytes - 2);
  return control_frame(role, Opcode::close, payload);
}

rpc::Rope text_frame(Role role, const rpc::Rope& message) {
  std::string head = unmasked_frame_head(Opcode::text, message.size());
  if (role == Role::client) {
    const std::size_t size = head.size();
    return rpc::Rope(Bytes::adopt(append_masked_payload(std::move(head), size, message.joined().view())));
  }
  std::vector<Bytes> parts;
  parts.push_back(Bytes::adopt(std::move(head)));
  message.each([&](const Bytes& part) { parts.push_back(part); });
  return rpc::Rope(std::move(parts), false);
}

// ---- handshake -------------------------------------------------------------------------------------------

std::string accept_header_value(std::string_view key) {
  constexpr std::string_view kMagic = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  const std::string text = std::string(key) + std::string(kMagic);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  ::EVP_Digest(text.data(), text.size(), digest, &size, ::EVP_sha1(), nullptr);
  return base64_encode(std::string_view(reinterpret_cast<const char*>(digest), size));
}

std::string make_client_key() {
  char bytes[16];
  fill_random(bytes, sizeof bytes);
  return base64_encode(std::string_view(bytes, sizeof bytes));
}

}  // namespace fairlead::http::websocket
