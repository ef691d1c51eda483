// A program outside the source tree that uses only the installed files.
#include <cstdio>

#include "fairlead/base/error.hpp"
#include "fairlead/json/scanner.hpp"
#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/task.hpp"

namespace {

fairlead::Task<int> count_bad() {
  int bad = 0;
  for (const char* text : {R"({"a":[1,2.5e3,"x"]})", R"({"a":)"}) {
    if (fairlead::json::validate(text)) ++bad;
  }
  co_return bad;
}

}  // namespace

int main() {
  fairlead::Loop loop;
  const int bad = loop.block_on(count_bad());
  std::printf("%d of 2 texts are not JSON\n", bad);
  return bad == 1 ? 0 : 1;
}
