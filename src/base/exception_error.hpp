// Private to the library.
#pragma once

#include <exception>
#include <string>

#include "fairlead/base/error.hpp"

namespace fairlead {

// Returns the error of a call that ended with an exception. It is usually std::bad_alloc.
inline Error exception_error(const std::exception& thrown) {
  return Error(ErrorKind::resource_exhausted, std::string("exception: ") + thrown.what());
}

}  // namespace fairlead
