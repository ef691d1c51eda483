// C2: no braced list, temporary aggregate or lambda with captures in an expression with co_await. The linter
// must flag exactly the marked lines.
#include <array>
#include <map>

#include "task.hpp"

Task<int> braced() {
  co_await with_options({"a", 1});                                          // flagged: C2
  co_await with_options(Options{.name = "a"});                              // flagged: C2
  co_await with_list({"a", "b", "c"});                                      // flagged: C2
  const Options both{co_await text(), co_await number()};                   // flagged: C2
  const std::array<std::string, 2> pair{co_await text(), co_await text()};  // flagged: C2
  co_return co_await with_options(Options{});                               // flagged: C2
}

Task<int> by_default() {
  co_await with_default_options(1);  // flagged: C2
  co_await with_default_limits(1);
  co_await with_default_name(1);
  co_return 0;
}

Task<int> lambdas(int limit) {
  co_await with_function([limit] { return limit; });            // flagged: C2
  co_await with_function([&limit] { return limit; });           // flagged: C2
  const int n = co_await with_function([=] { return limit; });  // flagged: C2
  co_return n;
}

Task<int> named(int limit) {
  const Options options{.name = "a", .tries = 2};
  co_await with_options(options);
  std::vector<std::string> words{"a", "b"};
  co_await with_list(std::move(words));
  std::function<int()> function = [limit] { return limit; };
  co_await with_function(std::move(function));
  co_return 0;
}

Task<int> constructed() {
  co_await with_name(Name("a", "b"));
  co_await with_name(Name{"a", "b"});
  co_await with_text("a", 1);
  co_await with_text(std::string(), int{3});
  co_await with_text(std::string{}, {});
  co_await with_function([] { return 1; });
  const std::string first = co_await text();
  co_return static_cast<int>(first.size());
}

void in_a_lambda_inside_a_list() {
  // The co_await is in the body of the lambda, so the list is not in the same expression.
  std::map<std::string, std::function<Task<int>(int)>> handlers{{"a", [](int n) -> Task<int> {
                                                                   const int m = co_await number();
                                                                   co_return n + m;
                                                                 }}};
}

template <class T>
Task<int> in_an_uninstantiated_template(T connection) {
  co_await connection.open(Options{.name = "a"});                // flagged: C2
  co_await connection.run([connection] { return connection; });  // flagged: C2
  const Options options{.name = "a"};
  co_await connection.open(options);
  co_return 0;
}
