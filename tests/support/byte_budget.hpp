// make_budget(): creates byte budgets for tests.
#pragma once

#include <memory>

#include "fairlead/base/byte_budget.hpp"

namespace fairlead::test {

inline std::shared_ptr<ByteBudget> make_budget(std::size_t client, std::size_t total) {
  ByteBudgetLimits limits;
  limits.max_client_buffer_bytes = client;
  limits.max_buffer_bytes = total;
  return ByteBudget::create(limits);
}

}  // namespace fairlead::test
