#include "header.hpp"

Task<int> in_a_source() {
  if (co_await ready()) co_return 1;  // flagged: C1
  co_return co_await in_a_header();
}
