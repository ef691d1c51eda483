// Signals: turns signals of the process into callbacks on a loop. It blocks them while it lives, so make it
// before any other thread is started; there is no signal handler.
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
