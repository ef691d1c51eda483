// A loop that another thread runs until this is destroyed.
#pragma once

#include <future>
#include <thread>

#include "fairlead/loop/loop.hpp"

namespace fairlead::test {

class OtherLoop {
 public:
  OtherLoop() : thread_([this] { loop.run(); }) {}
  ~OtherLoop() {
    wait();  // until it runs: an earlier stop() would be lost
    loop.stop();
    thread_.join();
  }
  OtherLoop(const OtherLoop&) = delete;

  // Runs `function` there and waits for it.
  template <class Function>
  void run(Function function) {
    std::promise<void> done;
    loop.post([&] {
      function();
      done.set_value();
    });
    done.get_future().wait();
  }
  // Until everything posted so far has run.
  void wait() {
    run([] {});
  }

  Loop loop;

 private:
  std::thread thread_;
};

}  // namespace fairlead::test
