// Query: the parameters in the query of a request's target. Private to the layer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fairlead/base/result.hpp"

namespace fairlead::admin {

class Query {
 public:
  // The parameters of a query may have this many bytes together before decoding.
  static constexpr std::size_t kMaxBytes = 8u << 10;

  Query() = default;
  // Parses "a=1&b=two"; `+` and %XX are decoded. Fails with `validation` and the failure code
  // `invalid_parameter` if an encoding is wrong, a value is not UTF-8, or a parameter is repeated.
  static Result<Query> parse(std::string_view text);

  // Returns null if there is no such parameter.
  const std::string* find(std::string_view name) const noexcept;
  const std::vector<std::pair<std::string, std::string>>& all() const noexcept { return parameters_; }

 private:
  std::vector<std::pair<std::string, std::string>> parameters_;
};

// Returns an error about a parameter of the query, with the failure code `invalid_parameter`.
Error parameter_error(std::string_view name, std::string_view problem);

// Decodes one segment of a path. Returns nullopt if an encoding is wrong, or if the result is not UTF-8 or
// contains NUL.
std::optional<std::string> decode_segment(std::string_view segment);

}  // namespace fairlead::admin
