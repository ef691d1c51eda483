// Helpers for tests of Message: parsing, and expectations about rejected messages.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "fairlead/rpc/codes.hpp"
#include "fairlead/rpc/message.hpp"
#include "rpc/message_parser.hpp"

namespace fairlead::rpc {

inline void expect_same(const Message& a, const Message& b) {
  EXPECT_EQ(a.kind(), b.kind());
  EXPECT_EQ(a.frame().view(), b.frame().view());
  EXPECT_EQ(a.id(), b.id());
  EXPECT_EQ(a.method(), b.method());
  EXPECT_EQ(a.params_text(), b.params_text());
  EXPECT_EQ(a.result_text(), b.result_text());
  EXPECT_EQ(a.error_object().text(), b.error_object().text());
  EXPECT_EQ(a.has_line_break(), b.has_line_break());
  EXPECT_EQ(a.lacks_result(), b.lacks_result());
  EXPECT_EQ(a.members().member_count(), b.members().member_count());
  EXPECT_EQ(a.value().text(), b.value().text());
  if (a.kind() != b.kind()) return;
  if (a.is(Kind::malformed)) {
    EXPECT_EQ(a.problem().to_string(), b.problem().to_string());
  }
  if (!a.is(Kind::batch)) return;
  ASSERT_EQ(a.batch().size(), b.batch().size());
  for (std::size_t i = 0; i < a.batch().size(); ++i) expect_same(a.batch()[i], b.batch()[i]);
}

// Parses `text` in one step, in the smallest steps, and as trusted JSON, and expects equal messages.
inline Message parse(std::string_view text, const Limits& limits = {}) {
  Message whole = Message::parse(Bytes::copy_of(text), limits);
  MessageParser parser(Bytes::copy_of(text), limits, 1);
  std::optional<Message> stepped = parser.step();
  for (std::size_t steps = 0; !stepped && steps <= 3 * text.size(); ++steps) stepped = parser.step();
  if (stepped) {
    expect_same(*stepped, whole);
  } else {
    ADD_FAILURE() << "the steps do not end";
  }
  const bool is_object = text.starts_with('{') && !whole.value().absent();
  if (is_object && whole.members().member_count() <= json::MemberIndex::kMaxMembers)
    expect_same(Message::parse_trusted(Bytes::copy_of(text), !whole.has_line_break()), whole);
  return whole;
}

// Returns a message with the member `jsonrpc` and the given members.
inline std::string with_version(std::string_view members) {
  return "{\"jsonrpc\":\"2.0\"," + std::string(members) + "}";
}

inline Kind kind_of(std::string_view members) {
  return parse(with_version(members)).kind();
}

inline std::string problem_with(std::string_view text, const Limits& limits = {}) {
  const Message message = parse(text, limits);
  if (!message.is(Kind::malformed)) return "none";
  return std::string(to_string(message.problem().kind())) + ": " + message.problem().message();
}

inline testing::AssertionResult is_parse_error(std::string_view text, const Limits& limits = {}) {
  const Message message = parse(text, limits);
  if (!message.is(Kind::malformed)) return testing::AssertionFailure() << "accepted: " << text.substr(0, 100);
  if (message.problem().kind() != ErrorKind::parse || message.problem().detail().rpc_code != kParseError)
    return testing::AssertionFailure() << message.problem().to_string() << ": " << text.substr(0, 100);
  if (!message.id().empty()) return testing::AssertionFailure() << "has an id: " << text.substr(0, 100);
  return testing::AssertionSuccess();
}

inline testing::AssertionResult is_invalid_request(std::string_view text, std::string_view id = "") {
  const Message message = parse(text);
  if (!message.is(Kind::malformed)) return testing::AssertionFailure() << "accepted: " << text;
  if (message.problem().kind() != ErrorKind::validation ||
      message.problem().detail().rpc_code != kInvalidRequest)
    return testing::AssertionFailure() << message.problem().to_string() << ": " << text;
  if (message.id() != id)
    return testing::AssertionFailure() << "id " << message.id() << " where " << id << " is due: " << text;
  return testing::AssertionSuccess();
}

}  // namespace fairlead::rpc
