// The decoder of WebSocket frames on any bytes, in both roles: the same comes out wherever the stream is cut,
// no more than the limit is held, and what we send is what the other role reads.
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
using rpc::checks::Cuts;
using rpc::checks::require;

constexpr std::size_t kMaxBytes = 3000;
constexpr std::size_t kLongestHead = 14;

struct Seen {
  Decoder::What what;
  std::string payload;
  std::uint16_t code;
  bool operator==(const Seen&) const = default;
};

bool is_last(Decoder::What what) {
  return what == Decoder::What::closed || what == Decoder::What::failed;
}

void check_step(const Decoder::Step& step) {
  require(step.payload.size() <= kMaxBytes);
  const char* const begin = step.payload.data();
  const char* const end = begin + step.payload.size();
  if (step.what == Decoder::What::message) require(json::find_invalid_utf8(begin, end) == end);
  if (step.what == Decoder::What::failed) require(step.code >= kNormal);
}

std::vector<Seen> in_pieces_of(std::string_view stream, std::size_t longest, Role role) {
  Decoder decoder(role, kMaxBytes);
  Cuts cuts(stream, longest);
  std::vector<Seen> seen;
  for (std::size_t fed = 0; fed < stream.size();) {
    const std::size_t size = std::min(stream.size() - fed, cuts.next());
    decoder.feed(stream.substr(fed, size));
    fed += size;
    for (;;) {
      Decoder::Step step = decoder.next();
      if (step.what == Decoder::What::more) break;
      check_step(step);
      seen.push_back(Seen{step.what, step.payload, step.code});
      if (is_last(step.what)) return seen;
    }
    require(decoder.buffered() <= 2 * kMaxBytes + kLongestHead + longest);
  }
  return seen;
}

// A text that goes out in a frame comes in as it was.
void check_round_trip(std::string_view text, Role sender) {
  if (json::find_invalid_utf8(text.data(), text.data() + text.size()) != text.data() + text.size()) return;
  if (text.size() > kMaxBytes) return;
  const Bytes frame = text_frame(sender, rpc::Rope(Bytes::copy_of(text))).joined();
  Decoder decoder(sender == Role::client ? Role::server : Role::client, kMaxBytes);
  decoder.feed(frame.view());
  const Decoder::Step step = decoder.next();
  require(step.what == Decoder::What::message && step.payload == text);
  require(decoder.buffered() == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<char> copy(data, data + size);
  const std::string_view stream(copy.data(), copy.size());
  for (const Role role : {Role::client, Role::server}) {
    const std::vector<Seen> whole = in_pieces_of(stream, 1u << 20, role);
    for (const std::size_t longest : {1u, 3u, 200u}) require(in_pieces_of(stream, longest, role) == whole);
    check_round_trip(stream, role);
  }
  return 0;
}
