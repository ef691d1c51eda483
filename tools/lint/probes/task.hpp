// A minimal coroutine type for the probes. The linter parses the probes; they are never run.
#pragma once

#include <coroutine>
#include <functional>
#include <string>
#include <utility>
#include <vector>

template <class T>
struct Task {
  struct promise_type {
    Task get_return_object() { return {}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_value(T) {}
    void unhandled_exception() {}
  };
  bool await_ready() { return false; }
  void await_suspend(std::coroutine_handle<>) {}
  T await_resume() { return T(); }
  ~Task() {}
};

struct Options {  // an aggregate
  std::string name;
  int tries = 0;
};

struct Limits {  // an aggregate with a trivial destructor
  int depth = 0;
  int size = 0;
};

struct Name {  // a class with constructors
  Name(std::string first, std::string last);
  std::string text;
};

Task<bool> ready();
Task<int> number();
Task<std::string> text();
Task<std::vector<int>> list();
Task<int> with_options(Options options);
Task<int> with_default_options(int n, Options options = {});
Task<int> with_default_limits(int n, Limits limits = {});
Task<int> with_default_name(int n, Name name = {"a", "b"});
Task<int> with_list(std::vector<std::string> list);
Task<int> with_name(Name name);
Task<int> with_text(std::string text, int limit);
Task<int> with_function(std::function<int()> function);
void start(Task<int> task);
