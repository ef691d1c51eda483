#include "fairlead/peer/methods.hpp"

namespace fairlead {

Methods& Methods::set(std::string method, Handler handler) {
  handlers_.insert_or_assign(std::move(method), std::move(handler));
  return *this;
}

const Methods::Handler* Methods::find(std::string_view method) const noexcept {
  const auto found = handlers_.find(method);
  if (found != handlers_.end()) return &found->second;
  return fallback_.plain || fallback_.coroutine ? &fallback_ : nullptr;
}

}  // namespace fairlead
