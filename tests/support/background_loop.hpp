// BackgroundLoop: a loop with a thread that runs it until the object is destroyed.
#pragma once

#include <future>
#include <thread>

#include "fairlead/loop/loop.hpp"

namespace fairlead::test {

class BackgroundLoop {
 public:
  BackgroundLoop() : thread_([this] { loop.run(); }) {}
  ~BackgroundLoop() {
    wait();  // until the loop runs: a stop() before run() would have no effect
    loop.stop();
    thread_.join();
  }
  BackgroundLoop(const BackgroundLoop&) = delete;

  // Runs `function` on the loop and blocks until it has returned.
  template <class Function>
  void run(Function function) {
    std::promise<void> done;
    loop.post([&] {
      function();
      done.set_value();
    });
    done.get_future().wait();
  }
  // Blocks until all callbacks posted so far have run.
  void wait() {
    run([] {});
  }

  Loop loop;

 private:
  std::thread thread_;
};

}  // namespace fairlead::test
