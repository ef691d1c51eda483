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

constexpr std::size_t kMostControlBytes = 125;
constexpr std::size_t kKeptInput = 4u << 10;  // memory that an idle decoder keeps
constexpr std::size_t kTidyFrom = 64u << 10;  // bytes done with that may stay in front
constexpr unsigned char kFinal = 0x80;
constexpr unsigned char kReserved = 0x70;
constexpr unsigned char kMasked = 0x80;

bool is_control(Opcode opcode) {
  return static_cast<unsigned>(opcode) >= 8;
}

bool is_known(unsigned opcode) {
  return opcode <= 2 || (opcode >= 8 && opcode <= 10);
}

bool is_utf8(std::string_view text) {
  const char* const end = text.data() + text.size();
  return json::find_invalid_utf8(text.data(), end) == end;
}

// Codes that may stand in a close frame.
bool is_sendable(unsigned code) {
  return (code >= 1000 && code <= 1014 && code != 1004 && code != kNoCode && code != 1006) ||
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
  // Never fails for so few bytes once the system is up.
  while (::getrandom(bytes, size, 0) != static_cast<ssize_t>(size)) continue;
}

std::string masked(std::string frame, std::size_t head_size, std::string_view payload) {
  char mask[4];
  fill_random(mask, sizeof mask);
  frame[1] = static_cast<char>(static_cast<unsigned char>(frame[1]) | kMasked);
  frame.append(mask, sizeof mask);
  frame += payload;
  apply_mask(frame.data() + head_size + sizeof mask, payload.size(), mask);
  return frame;
}

}  // namespace

// ---- reading --------------------------------------------------------------------------------------------

void Decoder::feed(std::string_view bytes) {
  if (!over_) input_ += bytes;
}

bool Decoder::read_head(Head& head) const {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(input_.data()) + at_;
  const std::size_t have = input_.size() - at_;
  if (have < 2) return false;
  const unsigned short_length = bytes[1] & 0x7fu;
  const std::size_t extra = short_length == 127 ? 8 : short_length == 126 ? 2 : 0;
  head.masked = (bytes[1] & kMasked) != 0;
  head.size = 2 + extra + (head.masked ? 4 : 0);
  head.final = (bytes[0] & kFinal) != 0;
  head.opcode = static_cast<Opcode>(bytes[0] & 0x0fu);
  head.length = short_length;
  // The first two bytes tell most of what can be wrong; do not wait for the rest of a bad head.
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

std::optional<Decoder::Step> Decoder::head_problem(const Head& head) const {
  const auto first = static_cast<unsigned char>(input_[at_]);
  const auto bad = [](std::uint16_t code, const char* why) { return Step{What::failed, why, code}; };
  if ((first & kReserved) != 0) return bad(kProtocolError, "a reserved bit is set");
  if (!is_known(first & 0x0fu)) return bad(kProtocolError, "an unknown kind of frame");
  if (head.masked != (role_ == Role::server))
    return bad(kProtocolError,
               role_ == Role::server ? "a client's frame is not masked" : "a server's frame is masked");
  if (is_control(head.opcode)) {
    if (!head.final) return bad(kProtocolError, "a control frame in fragments");
    // By the first byte of the length: a longer form of a short length is refused too, wherever the head is
    // cut.
    if ((static_cast<unsigned char>(input_[at_ + 1]) & 0x7fu) > kMostControlBytes)
      return bad(kProtocolError, "a control frame over 125 bytes");
    return std::nullopt;
  }
  if (head.opcode == Opcode::binary) return bad(kUnsupported, "a binary message");
  if ((head.opcode == Opcode::continuation) != in_message_)
    return bad(kProtocolError, in_message_ ? "a new message inside of another" : "a fragment of no message");
  if (head.size == 0) return std::nullopt;
  const std::uint64_t shortest = head.length;
  const auto marker = static_cast<unsigned char>(input_[at_ + 1]) & 0x7fu;
  if ((marker == 126 && shortest < 126) || (marker == 127 && shortest < 0x10000) || shortest >> 63)
    return bad(kProtocolError, "a length that is not as short as it could be");
  if (head.length > max_bytes_ || message_.size() + head.length > max_bytes_)
    return Step{What::failed, "a message over max_frame_bytes (" + std::to_string(max_bytes_) + ")", kTooBig};
  return std::nullopt;
}

Decoder::Step Decoder::next() {
  while (!over_) {
    Head head;
    if (!read_head(head)) break;
    if (std::optional<Step> problem = head_problem(head))
      return fail(problem->code, std::move(problem->payload));
    if (head.size == 0 || input_.size() - at_ - head.size < head.length) break;
    std::string payload = take_payload(head);
    if (is_control(head.opcode)) return take_control(head, std::move(payload));
    Step step = take_data(head, std::move(payload));
    if (step.what != What::more) return step;
  }
  return {};
}

std::string Decoder::take_payload(const Head& head) {
  std::string payload = input_.substr(at_ + head.size, static_cast<std::size_t>(head.length));
  at_ += head.size + payload.size();
  if (at_ == input_.size()) {
    reset_string(input_, kKeptInput);
    at_ = 0;
  } else if (at_ > kTidyFrom) {
    std::string rest(input_, at_);  // erase() would keep the memory of a large frame
    input_.swap(rest);
    at_ = 0;
  }
  if (head.masked) apply_mask(payload.data(), payload.size(), head.mask);
  return payload;
}

Decoder::Step Decoder::take_control(const Head& head, std::string payload) {
  if (head.opcode == Opcode::ping) return Step{What::ping, std::move(payload), 0};
  if (head.opcode == Opcode::pong) return Step{What::pong, std::move(payload), 0};
  if (payload.empty()) {
    over_ = true;
    return Step{What::closed, {}, kNoCode};
  }
  if (payload.size() < 2) return fail(kProtocolError, "a close frame of one byte");
  const auto code = static_cast<std::uint16_t>(static_cast<unsigned char>(payload[0]) << 8 |
                                               static_cast<unsigned char>(payload[1]));
  std::string reason = payload.substr(2);
  if (!is_sendable(code)) return fail(kProtocolError, "a close frame with a code that may not be sent");
  if (!is_utf8(reason)) return fail(kNotUtf8, "a close frame whose reason is not UTF-8");
  over_ = true;
  return Step{What::closed, std::move(reason), code};
}

Decoder::Step Decoder::take_data(const Head& head, std::string payload) {
  if (message_.empty()) {
    message_ = std::move(payload);
  } else {
    message_ += payload;
  }
  in_message_ = !head.final;
  if (in_message_) return {};
  std::string whole = std::move(message_);
  message_ = std::string();
  if (!is_utf8(whole)) return fail(kNotUtf8, "a text message that is not UTF-8");
  return Step{What::message, std::move(whole), 0};
}

Decoder::Step Decoder::fail(std::uint16_t code, std::string why) {
  over_ = true;
  reset_string(input_);
  reset_string(message_);
  at_ = 0;
  return Step{What::failed, std::move(why), code};
}

// ---- writing --------------------------------------------------------------------------------------------

std::string frame_head(Opcode opcode, std::uint64_t length) {
  std::string head(1, static_cast<char>(kFinal | static_cast<unsigned>(opcode)));
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
  payload = payload.substr(0, kMostControlBytes);
  std::string frame = frame_head(opcode, payload.size());
  if (role == Role::client) return masked(std::move(frame), 2, payload);
  frame += payload;
  return frame;
}

std::string close_frame(Role role, std::uint16_t code, std::string_view reason) {
  if (code == kNoCode) return control_frame(role, Opcode::close, {});
  std::string payload{static_cast<char>(code >> 8), static_cast<char>(code & 0xff)};
  payload += reason.substr(0, kMostControlBytes - 2);
  return control_frame(role, Opcode::close, payload);
}

rpc::Rope text_frame(Role role, const rpc::Rope& message) {
  std::string head = frame_head(Opcode::text, message.size());
  if (role == Role::client) {
    const std::size_t size = head.size();
    return rpc::Rope(Bytes::adopt(masked(std::move(head), size, message.joined().view())));
  }
  std::vector<Bytes> parts;
  parts.push_back(Bytes::adopt(std::move(head)));
  message.each([&](const Bytes& part) { parts.push_back(part); });
  return rpc::Rope(std::move(parts), false);
}

// ---- the handshake --------------------------------------------------------------------------------------

std::string accept_of(std::string_view key) {
  constexpr std::string_view kMagic = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  const std::string text = std::string(key) + std::string(kMagic);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  ::EVP_Digest(text.data(), text.size(), digest, &size, ::EVP_sha1(), nullptr);
  return base64_encode(std::string_view(reinterpret_cast<const char*>(digest), size));
}

std::string make_key() {
  char bytes[16];
  fill_random(bytes, sizeof bytes);
  return base64_encode(std::string_view(bytes, sizeof bytes));
}

}  // namespace fairlead::http::websocket
