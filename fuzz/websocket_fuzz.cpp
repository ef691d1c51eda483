// Decodes WebSocket frames from arbitrary bytes in both roles: the result does not depend on how the stream
// is split, buffered bytes stay within the limit, and what one role sends the other role reads.
#include "http/websocket.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codec_checks.hpp"
#include "json/utf8.hpp"

namespace {

using namespace fairlead;
using namespace fairlead::http::websocket;
using rpc::checks::PieceSizes;
using rpc::checks::require;

constexpr std::size_t kMaxBytes = 3000;
constexpr std::size_t kMaxHeaderBytes = 14;

struct DecodedEvent {
  Decoder::EventType type;
  std::string payload;
  std::uint16_t code;
  bool operator==(const DecodedEvent&) const = default;
};

bool is_last(Decoder::EventType type) {
  return type == Decoder::EventType::closed || type == Decoder::EventType::failed;
}

void check_event(const Decoder::Event& event) {
  require(event.payload.size() <= kMaxBytes);
  const char* const begin = event.payload.data();
  const char* const end = begin + event.payload.size();
  if (event.type == Decoder::EventType::message) require(json::find_invalid_utf8(begin, end) == end);
  if (event.type == Decoder::EventType::failed) require(event.code >= kNormalClosure);
}

std::vector<DecodedEvent> in_pieces_of(std::string_view stream, std::size_t longest, Role role) {
  Decoder decoder(role, kMaxBytes);
  PieceSizes sizes(stream, longest);
  std::vector<DecodedEvent> events;
  for (std::size_t fed = 0; fed < stream.size();) {
    const std::size_t size = std::min(stream.size() - fed, sizes.next());
    decoder.feed(stream.substr(fed, size));
    fed += size;
    for (;;) {
      Decoder::Event event = decoder.next();
      if (event.type == Decoder::EventType::need_more) break;
      check_event(event);
      events.push_back(DecodedEvent{event.type, event.payload, event.code});
      if (is_last(event.type)) return events;
    }
    require(decoder.buffered_bytes() <= 2 * kMaxBytes + kMaxHeaderBytes + longest);
  }
  return events;
}

// A text sent in a frame is received unchanged.
void check_round_trip(std::string_view text, Role sender) {
  if (json::find_invalid_utf8(text.data(), text.data() + text.size()) != text.data() + text.size()) return;
  if (text.size() > kMaxBytes) return;
  const Bytes frame = text_frame(sender, rpc::Rope(Bytes::copy_of(text))).joined();
  Decoder decoder(sender == Role::client ? Role::server : Role::client, kMaxBytes);
  decoder.feed(frame.view());
  const Decoder::Event event = decoder.next();
  require(event.type == Decoder::EventType::message && event.payload == text);
  require(decoder.buffered_bytes() == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<char> copy(data, data + size);
  const std::string_view stream(copy.data(), copy.size());
  for (const Role role : {Role::client, Role::server}) {
    const std::vector<DecodedEvent> whole = in_pieces_of(stream, 1u << 20, role);
    for (const std::size_t longest : {1u, 3u, 200u}) require(in_pieces_of(stream, longest, role) == whole);
    check_round_trip(stream, role);
  }
  return 0;
}
