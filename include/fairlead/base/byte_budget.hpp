// ByteBudget: limits the buffer memory that clients of a server can occupy, per client and in total. Request
// bodies, unread responses, incomplete messages and waiting calls are charged before memory is allocated.
//
// Not thread-safe: a budget, its accounts and their charges belong to one loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "fairlead/base/error.hpp"

namespace fairlead {

class ByteAccount;

struct ByteBudgetLimits {
  std::size_t max_client_buffer_bytes = 64u << 20;  // per principal, or per address if anonymous
  std::size_t max_buffer_bytes = 256u << 20;        // all clients together

  bool operator==(const ByteBudgetLimits&) const = default;
};

class ByteBudget : public std::enable_shared_from_this<ByteBudget> {
 public:
  using Limits = ByteBudgetLimits;

  static std::shared_ptr<ByteBudget> create(Limits limits = Limits());

  // Returns the account of the client with this key (see client_key() in principal.hpp). Calls with equal
  // keys return the same account as long as a reference to the account exists.
  std::shared_ptr<ByteAccount> account(const std::string& key);

  const Limits& limits() const noexcept { return limits_; }
  std::size_t used_bytes() const noexcept { return used_; }
  std::size_t account_count() const noexcept { return accounts_.size(); }  // accounts that exist now

 private:
  friend class ByteAccount;
  friend class ByteCharge;
  explicit ByteBudget(Limits limits) : limits_(limits) {}

  Limits limits_;
  std::size_t used_ = 0;
  std::unordered_map<std::string, std::weak_ptr<ByteAccount>> accounts_;
};

// The bytes charged to one client. An account keeps its budget alive.
class ByteAccount {
 public:
  ByteAccount(std::shared_ptr<ByteBudget> budget, std::string key)
      : budget_(std::move(budget)), key_(std::move(key)) {}
  ~ByteAccount();
  ByteAccount(const ByteAccount&) = delete;
  ByteAccount& operator=(const ByteAccount&) = delete;

  std::size_t used_bytes() const noexcept { return used_; }
  const ByteBudget& budget() const noexcept { return *budget_; }

 private:
  friend class ByteCharge;

  std::shared_ptr<ByteBudget> budget_;
  std::string key_;
  std::size_t used_ = 0;
};

enum class ChargeOutcome : std::uint8_t {
  charged,
  client_exhausted,  // not charged: the client would exceed max_client_buffer_bytes
  total_exhausted,   // not charged: all clients together would exceed max_buffer_bytes
};

// RAII handle for bytes charged to an account; the destructor releases them. A charge without an account
// accepts any size.
class ByteCharge {
 public:
  ByteCharge() = default;
  explicit ByteCharge(std::shared_ptr<ByteAccount> account) : account_(std::move(account)) {}
  ByteCharge(ByteCharge&& other) noexcept
      : account_(std::exchange(other.account_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  ByteCharge& operator=(ByteCharge&& other) noexcept;
  ~ByteCharge() { set(0); }

  // Changes the charge to `bytes`. If the new charge would exceed a limit, returns which limit and leaves the
  // charge unchanged. Shrinking always succeeds.
  [[nodiscard]] ChargeOutcome resize(std::size_t bytes) noexcept;
  // Changes the charge to `bytes` without checking the limits, for memory that is already allocated.
  void set(std::size_t bytes) noexcept;
  std::size_t bytes() const noexcept { return bytes_; }

  // Returns the error for a resize() that failed with `outcome`: kind resource_exhausted, and a message that
  // names the limit.
  // REQUIRES: outcome != ChargeOutcome::charged.
  Error refusal_error(ChargeOutcome outcome) const;

 private:
  std::shared_ptr<ByteAccount> account_;
  std::size_t bytes_ = 0;
};

}  // namespace fairlead
