// Parses messages from arbitrary bytes: they are classified without a crash, their slices lie within the
// frame, and a forwarded message with another id keeps every other part.
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "fairlead/json/scanner.hpp"
#include "fairlead/rpc/codes.hpp"
#include "fairlead/rpc/message.hpp"
#include "fairlead/rpc/rope.hpp"
#include "rpc/message_parser.hpp"
#include "rpc/write_queue.hpp"

namespace {

using namespace fairlead;
using namespace fairlead::rpc;

void require(bool holds) {
  if (!holds) std::abort();
}

bool lies_within(std::string_view part, std::string_view whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void check_slices(const Message& message) {
  const std::string_view frame = message.frame().view();
  require(lies_within(message.id(), frame));
  require(lies_within(message.params_text(), frame));
  require(lies_within(message.result_text(), frame) || message.result_text() == "null");
  require(lies_within(message.error_object().text(), frame));
  for (const std::string_view part : {message.id(), message.params_text(), message.result_text()})
    require(part.empty() || !json::validate(part));
}

bool same_but_id(const Message& a, const Message& b) {
  return a.kind() == b.kind() && a.method() == b.method() && a.params_text() == b.params_text() &&
         a.result_text() == b.result_text() && a.error_object().text() == b.error_object().text();
}

void check_with_id(const Message& message) {
  constexpr std::string_view kId = "\"4711\"";
  const Rope rope = with_id(message, kId);
  const Bytes joined = rope.joined();
  const std::string_view frame = message.frame().view();
  require(joined.size() == frame.size() - message.id().size() + kId.size());
  const Message again = Message::parse(joined);
  require(again.id() == kId && same_but_id(message, again));
  const Message back = Message::parse(with_id(again, message.id()).joined());
  require(back.frame().view() == frame);
}

// A message written as a line is one line and parses to the same message.
void check_as_line(const Message& message) {
  WriteQueue queue(Framing::line);
  require(queue.push(Rope(message)).has_value());
  std::string line;
  iovec part{};
  while (!queue.empty()) {
    require(queue.fill_iovecs(std::span(&part, 1)) == 1);
    line.append(static_cast<const char*>(part.iov_base), part.iov_len);
    queue.advance(part.iov_len);
  }
  require(line.find_first_of("\r\n") == line.size() - 1);
  line.pop_back();
  if (!message.has_line_break()) require(line == message.frame().view());
  const Message again = Message::parse(Bytes::copy_of(line));
  require(again.kind() == message.kind() && again.id() == message.id() && again.method() == message.method());
}

// Every invalid message can be answered with an error response.
void check_error_response(const Message& message) {
  const WireError wire = to_wire(message.problem());
  require(wire.code == kParseError || wire.code == kInvalidRequest);
  const std::string_view id = message.id().empty() ? "null" : message.id();
  const Message response = Message::parse(make_error(id, wire.code, wire.message, wire.data).joined());
  require(response.is(Kind::error) && response.id() == id &&
          response.remote_error().detail().rpc_code == wire.code);
}

void check_one(const Message& message) {
  check_slices(message);
  if (message.is(Kind::malformed)) return check_error_response(message);
  if (message.is(Kind::error)) static_cast<void>(message.remote_error());
  if (!message.id().empty()) check_with_id(message);
  check_as_line(message);
}

// Parsing in steps has the same result.
void check_steps(const Message& whole, std::string_view text, const Limits& limits) {
  MessageParser parser(Bytes::copy_of(text), limits, 3);
  std::optional<Message> stepped = parser.step();
  for (std::size_t steps = 0; !stepped; ++steps) {
    require(steps <= 3 * text.size());
    stepped = parser.step();
  }
  require(same_but_id(whole, *stepped) && whole.id() == stepped->id() &&
          whole.has_line_break() == stepped->has_line_break());
  if (whole.is(Kind::malformed)) require(whole.problem().message() == stepped->problem().message());
  if (whole.is(Kind::batch)) require(whole.batch().size() == stepped->batch().size());
}

void check(std::string_view text, const Limits& limits) {
  const Message message = Message::parse(Bytes::copy_of(text), limits);
  check_steps(message, text, limits);
  const bool valid = !json::validate(text, limits.max_depth);
  require(valid == !(message.is(Kind::malformed) && message.problem().kind() == ErrorKind::parse));
  if (!message.is(Kind::batch)) return check_one(message);
  require(!message.batch().empty() && message.batch().size() <= limits.max_batch_messages);
  check_as_line(message);
  for (const Message& one : message.batch()) {
    require(lies_within(one.frame().view(), message.frame().view()));
    check_one(one);
    const Message alone = Message::parse(Bytes::copy_of(one.frame().view()), limits);
    require(one.is(Kind::malformed) || (alone.kind() == one.kind() && alone.id() == one.id()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Limits tight;
  tight.max_depth = 6;
  tight.max_batch_messages = 3;
  check(text, tight);
  check(text, Limits());
  return 0;
}
