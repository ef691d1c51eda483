// Result<T>: a value or an Error. Discarding a Result causes a compiler warning, which the build treats as an
// error.
#pragma once

#include <expected>

#include "fairlead/base/error.hpp"

namespace fairlead {

template <class T>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;
  Result(Error error) : std::expected<T, Error>(std::unexpected(std::move(error))) {}
};

}  // namespace fairlead
