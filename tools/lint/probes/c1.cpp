// C1: no co_await in a condition, a loop head, a switch head, ?:, && or ||. The linter must flag exactly the
// marked lines.
#include "task.hpp"

Task<int> in_if() {
  if (co_await ready()) co_return 1;  // flagged: C1
  co_return 0;
}

Task<int> in_if_with_negation_and_comparison() {
  if (!co_await ready()) co_return 1;                 // flagged: C1
  if (co_await number() > 3) co_return 1;             // flagged: C1
  if (int n = co_await number()) co_return n;         // flagged: C1
  if (int n = co_await number(); n > 3) co_return n;  // flagged: C1
  co_return 0;
}

Task<int> in_loops() {
  while (co_await ready()) {  // flagged: C1
  }
  do {  // flagged: C1
  } while (co_await ready());
  for (int i = 0; i < co_await number(); ++i) {  // flagged: C1
  }
  for (int i = co_await number(); i < 3; ++i) {  // flagged: C1
  }
  for (int i = 0; i < 3; i += co_await number()) {  // flagged: C1
  }
  for (int i : co_await list()) {  // flagged: C1
    (void)i;
  }
  co_return 0;
}

Task<int> in_switch() {
  switch (co_await number()) {  // flagged: C1
    default: co_return 0;
  }
}

Task<int> in_operators(bool flag) {
  const int chosen = flag ? co_await number() : 0;  // flagged: C1
  const bool both = flag && co_await ready();       // flagged: C1
  const bool either = co_await ready() || flag;     // flagged: C1
  co_return chosen + both + either;
}

Task<int> named_first() {
  const bool ok = co_await ready();
  if (ok) co_return 1;
  const int n = co_await number();
  switch (n) {
    default: break;
  }
  const std::vector<int> all = co_await list();
  for (int i : all) (void)i;
  co_return ok ? n : 0;
}

Task<int> in_bodies(bool flag) {
  while (flag) {
    const int n = co_await number();
    if (n > 3) co_return co_await number();
  }
  if (flag) {
    co_await ready();
  } else {
    co_await number();
  }
  for (int i = 0; i < 3; ++i) co_await number();
  switch (int n = flag; n) {
    case 1: co_await ready(); break;
    default: break;
  }
  co_return 0;
}

Task<int> in_a_nested_lambda(bool flag) {
  if (auto run = [](bool) -> Task<int> { co_return co_await number(); }; flag) start(run(flag));
  co_return 0;
}

template <class T>
Task<int> in_an_uninstantiated_template(Task<T> task) {
  if (co_await task) co_return 1;  // flagged: C1
  const T value = co_await task;
  if (value) co_return 1;
  co_return 0;
}
