// Private to the library.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "fairlead/base/log.hpp"

namespace fairlead {

// Logs the exception that is being handled, which the handler of a request has thrown. REQUIRES: called in a
// catch block.
inline void log_handler_exception(const Log& log, std::string_view method) {
  try {
    throw;
  } catch (const std::exception& thrown) {
    log.error("handler threw an exception", {{"method", std::string(method)}, {"what", thrown.what()}});
  } catch (...) {
    log.error("handler threw an exception", {{"method", std::string(method)}});
  }
}

}  // namespace fairlead
