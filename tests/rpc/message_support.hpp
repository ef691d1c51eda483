// Shared by the tests of messages: parsing a text, and what is expected of one that is refused.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "fairlead/rpc/codes.hpp"
#include "fairlead/rpc/message.hpp"

namespace fairlead::rpc {

inline Message parse(std::string_view text, const Limits& limits = {}) {
  return Message::parse(Bytes::copy_of(text), limits);
}

// The envelope around some members.
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
