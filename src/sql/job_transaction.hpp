// JobTransaction: the transaction that a job gets. finish_transaction() runs a job in it.
#pragma once

#include <optional>

#include "sql/driver.hpp"

namespace fairlead::sql {

// Checks parameters, and fails all statements after the first failure, so that both databases behave alike:
// after a failure, PostgreSQL accepts no further statement.
class JobTransaction final : public Transaction {
 public:
  explicit JobTransaction(Driver& driver) : driver_(driver) {}

  using Transaction::execute;
  Result<std::vector<Row>> execute(std::string_view statement, std::span<const Value> parameters) override;
  Result<void> notify() override;
  void erase_former_content() override { driver_.erase_former_content(); }
  const std::optional<Error>& failure() const noexcept { return failure_; }

 private:
  Driver& driver_;
  std::optional<Error> failure_;
};

// Runs `job` and commits, or rolls back if the job fails or throws. REQUIRES: `driver` is in a
// transaction.
Result<void> finish_transaction(Driver& driver, Database::Job& job);

}  // namespace fairlead::sql
