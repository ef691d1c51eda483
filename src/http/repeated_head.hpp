// RepeatedHead: recognizes a response whose head repeats that of an earlier response. Servers send the same
// head with every response, except for the value of Content-Length. Such a response is parsed by comparing
// its head with the earlier one.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fairlead::http {

class RepeatedHead {
 public:
  // Stores the head of a response. `length` is the value of its only Content-Length, and a part of `head`.
  void assign(std::string_view head, std::string_view length) {
    const auto length_at = static_cast<std::size_t>(length.data() - head.data());
    before_length_ = head.substr(0, length_at);
    after_length_ = head.substr(length_at + length.size());
  }
  // Returns the body of `response` if its head equals the stored one, except for the value of Content-Length,
  // and if exactly as many bytes follow as it announces; otherwise nullopt.
  std::optional<std::string_view> body_of(std::string_view response) const noexcept {
    if (before_length_.empty() || !response.starts_with(before_length_)) return std::nullopt;
    response.remove_prefix(before_length_.size());
    std::size_t length = 0;
    std::size_t digits = 0;
    for (; digits < response.size() && response[digits] >= '0' && response[digits] <= '9'; ++digits)
      length = length * 10 + static_cast<std::size_t>(response[digits] - '0');
    if (digits == 0 || digits > kMaxDigits) return std::nullopt;
    response.remove_prefix(digits);
    if (!response.starts_with(after_length_)) return std::nullopt;
    response.remove_prefix(after_length_.size());
    if (response.size() != length) return std::nullopt;
    return response;
  }

 private:
  static constexpr std::size_t kMaxDigits = 9;

  std::string before_length_;  // the head up to the value of Content-Length; empty: no head is stored
  std::string after_length_;   // the rest of the head
};

}  // namespace fairlead::http
