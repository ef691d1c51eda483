// URI references as schemas use them: resolved against a base (RFC 3986, section 5.2), never fetched.
#pragma once

#include <string>
#include <string_view>

namespace fairlead::json {

// `reference` as seen from `base`, with its fragment. An empty base is a document without an address.
std::string resolve_uri(std::string_view base, std::string_view reference);

struct SplitUri {
  std::string_view document;
  std::string_view fragment;  // without the #
  bool has_fragment;
};
SplitUri split_fragment(std::string_view uri) noexcept;

// With %41 turned into A. What is no such escape stays as it is.
std::string percent_decoded(std::string_view text);

}  // namespace fairlead::json
