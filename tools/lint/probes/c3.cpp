// C3: a coroutine lambda has no captures. The linter must flag exactly the marked lines.
#include "task.hpp"

void capturing(int n, std::string& name) {
  auto by_value = [n]() -> Task<int> { co_return n; };  // flagged: C3
  auto by_reference = [&name]() -> Task<int> {          // flagged: C3
    co_await number();
    co_return static_cast<int>(name.size());
  };
  start([=]() -> Task<int> { co_return n; }());  // flagged: C3
  start(by_value());
  start(by_reference());
}

struct Owner {
  void run() {
    auto task = [this]() -> Task<int> { co_return co_await with_text("a", n); };  // flagged: C3
    start(task());
  }
  Task<int> member() { co_return n; }
  int n = 0;
};

void plain(int n) {
  auto with_arguments = [](int m) -> Task<int> { co_return m; };
  start(with_arguments(n));
  auto starts_another = [n] { start([](int m) -> Task<int> { co_return m; }(n)); };
  starts_another();
  Owner owner;
  start(owner.member());
}

template <class T>
void in_a_template(T value) {
  auto task = [value]() -> Task<T> { co_return value; };  // flagged: C3
  start(task());
}
