// Signals: delivers signals of the process as callbacks on a loop. The signals are blocked for the lifetime
// of the object, so it must be created before any other thread is started. It installs no signal handler.
#pragma once

#include <csignal>
#include <functional>
#include <initializer_list>
#include <memory>

#include "fairlead/base/result.hpp"
#include "fairlead/loop/loop.hpp"

namespace fairlead {

class Signals {
 public:
  // Calls `callback` on the loop thread for each signal in `signals` that the process receives. Fails with
  // `io` if the process is out of descriptors.
  static Result<Signals> watch(Loop& loop, std::initializer_list<int> signals,
                               std::function<void(int signal)> callback);
  Signals(Signals&&) noexcept;
  Signals& operator=(Signals&&) noexcept;
  ~Signals();

 private:
  struct Impl;
  explicit Signals(std::shared_ptr<Impl> impl) noexcept;
  std::shared_ptr<Impl> impl_;
};

}  // namespace fairlead
