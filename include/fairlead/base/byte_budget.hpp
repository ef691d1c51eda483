// ByteBudget: limits the memory that the clients of a server make it use, per client and in total. Request
// bodies, unread answers, incomplete messages and waiting calls are charged before memory is allocated.
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
  std::size_t max_client_buffer_bytes = 64u << 20;  // of one principal, or of one address without a principal
  std::size_t max_buffer_bytes = 256u << 20;        // of all clients

  bool operator==(const ByteBudgetLimits&) const = default;
};

class ByteBudget : public std::enable_shared_from_this<ByteBudget> {
 public:
  using Limits = ByteBudgetLimits;

  static std::shared_ptr<ByteBudget> create(Limits limits = Limits());

  // Returns the account of a client. Equal keys share one account while a reference to it exists.
  std::shared_ptr<ByteAccount> account(const std::string& key);

  const Limits& limits() const noexcept { return limits_; }
  std::size_t used() const noexcept { return used_; }
  std::size_t accounts() const noexcept { return accounts_.size(); }

 private:
  friend class ByteAccount;
  friend class ByteCharge;
  explicit ByteBudget(Limits limits) : limits_(limits) {}

  Limits limits_;
  std::size_t used_ = 0;
  std::unordered_map<std::string, std::weak_ptr<ByteAccount>> accounts_;
};

// The bytes charged to one client. Keeps its budget alive.
class ByteAccount {
 public:
  ByteAccount(std::shared_ptr<ByteBudget> budget, std::string key)
      : budget_(std::move(budget)), key_(std::move(key)) {}
  ~ByteAccount();
  ByteAccount(const ByteAccount&) = delete;
  ByteAccount& operator=(const ByteAccount&) = delete;

  std::size_t used() const noexcept { return used_; }
  const ByteBudget& budget() const noexcept { return *budget_; }

 private:
  friend class ByteCharge;

  std::shared_ptr<ByteBudget> budget_;
  std::string key_;
  std::size_t used_ = 0;
};

enum class ChargeOutcome : std::uint8_t {
  charged,
  client_exhausted,  // max_client_buffer_bytes
  total_exhausted,   // max_buffer_bytes
};

// Bytes charged to an account until they are released or the charge is destroyed. One without an account
// accepts everything.
class ByteCharge {
 public:
  ByteCharge() = default;
  explicit ByteCharge(std::shared_ptr<ByteAccount> account) : account_(std::move(account)) {}
  ByteCharge(ByteCharge&& other) noexcept
      : account_(std::exchange(other.account_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  ByteCharge& operator=(ByteCharge&& other) noexcept;
  ~ByteCharge() { set(0); }

  // Charges `bytes` instead of what is charged now. When that does not fit, nothing changes. Less always
  // fits.
  [[nodiscard]] ChargeOutcome resize(std::size_t bytes) noexcept;
  // The same without a check, for bytes that are allocated already.
  void set(std::size_t bytes) noexcept;
  std::size_t bytes() const noexcept { return bytes_; }

  // The error for an outcome of resize(): of kind resource_exhausted, it names the limit.
  Error refusal(ChargeOutcome outcome) const;

 private:
  std::shared_ptr<ByteAccount> account_;
  std::size_t bytes_ = 0;
};

}  // namespace fairlead
