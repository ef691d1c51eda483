#include "fairlead/base/byte_budget.hpp"

#include <gtest/gtest.h>

#include "support/byte_budget.hpp"

namespace fairlead {
namespace {

using test::make_budget;

TEST(ByteBudgetTest, ChargeFailsAndNamesLimitWhenClientExceedsItsLimit) {
  const auto budget = make_budget(100, 1000);
  ByteCharge first(budget->account("a"));
  ByteCharge second(budget->account("a"));
  EXPECT_EQ(first.resize(60), ChargeOutcome::charged);
  EXPECT_EQ(second.resize(41), ChargeOutcome::client_exhausted);
  EXPECT_EQ(second.bytes(), 0u);
  EXPECT_EQ(second.resize(40), ChargeOutcome::charged);
  EXPECT_EQ(second.refusal_error(ChargeOutcome::client_exhausted).message(),
            "resource exhausted: this client is over max_client_buffer_bytes (100 bytes)");
  EXPECT_EQ(second.refusal_error(ChargeOutcome::client_exhausted).kind(), ErrorKind::resource_exhausted);
}

TEST(ByteBudgetTest, ChargeFailsAndNamesLimitWhenAllClientsExceedTotal) {
  const auto budget = make_budget(100, 150);
  ByteCharge a(budget->account("a"));
  ByteCharge b(budget->account("b"));
  EXPECT_EQ(a.resize(100), ChargeOutcome::charged);
  EXPECT_EQ(b.resize(51), ChargeOutcome::total_exhausted);
  EXPECT_EQ(b.resize(50), ChargeOutcome::charged);
  EXPECT_EQ(budget->used_bytes(), 150u);
  EXPECT_EQ(b.refusal_error(ChargeOutcome::total_exhausted).message(),
            "resource exhausted: all clients together are over max_buffer_bytes (150 bytes)");
}

TEST(ByteBudgetTest, DestroyedAndShrunkChargesReleaseBytes) {
  const auto budget = make_budget(100, 100);
  ByteCharge kept(budget->account("a"));
  {
    ByteCharge gone(budget->account("a"));
    EXPECT_EQ(gone.resize(100), ChargeOutcome::charged);
    EXPECT_EQ(kept.resize(1), ChargeOutcome::client_exhausted);
  }
  EXPECT_EQ(kept.resize(100), ChargeOutcome::charged);
  EXPECT_EQ(kept.resize(30), ChargeOutcome::charged);
  EXPECT_EQ(budget->used_bytes(), 30u);
  ByteCharge moved = std::move(kept);
  EXPECT_EQ(moved.bytes(), 30u);
  moved = ByteCharge();
  EXPECT_EQ(budget->used_bytes(), 0u);
}

TEST(ByteBudgetTest, SetMayExceedLimitAndLaterChargesFail) {
  const auto budget = make_budget(100, 1000);
  ByteCharge charge(budget->account("a"));
  charge.set(300);
  ByteCharge other(budget->account("a"));
  EXPECT_EQ(other.resize(1), ChargeOutcome::client_exhausted);
  EXPECT_EQ(charge.resize(200), ChargeOutcome::charged);
  EXPECT_EQ(budget->account("a")->used_bytes(), 200u);
}

TEST(ByteBudgetTest, AccountIsRemovedWithItsLastReference) {
  const auto budget = make_budget(100, 1000);
  for (int i = 0; i < 1000; ++i) {
    ByteCharge charge(budget->account(std::to_string(i)));
    EXPECT_EQ(charge.resize(1), ChargeOutcome::charged);
  }
  EXPECT_EQ(budget->account_count(), 0u);
}

TEST(ByteBudgetTest, ChargeWithoutAccountAcceptsAnySize) {
  ByteCharge charge;
  EXPECT_EQ(charge.resize(~std::size_t{0}), ChargeOutcome::charged);
}

}  // namespace
}  // namespace fairlead
