// Values that must not be seen: where they come from, and how they are kept out of what we say.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/result.hpp"

namespace fairlead::process {

// Takes secrets out of text. Cheap when there are none.
class Redactor {
 public:
  // Shorter ones would blot out half of every text.
  static constexpr std::size_t kMinSecret = 4;

  // Of one with several lines, each line is a secret too: text is often seen line by line.
  void add(std::string_view secret);
  bool empty() const noexcept { return secrets_.empty(); }

  // Each secret becomes `***`; so does the beginning of one at the end of `text`, where a line may have been
  // cut.
  std::string redact(std::string_view text) const;

 private:
  void add_one(std::string_view secret);
  std::string_view secret_at(std::string_view text) const;

  std::vector<std::string> secrets_;  // longest first
};

// `reference` with its references replaced; what they stand for is added to `redactor`, or all of it when
// there is none in it. Kind spawn when a variable is not set or a file cannot be read.
Result<std::string> resolve_secret(const std::string& name, std::string_view reference, Redactor& redactor);

}  // namespace fairlead::process
