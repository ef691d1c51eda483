#include "fairlead/base/byte_budget.hpp"

namespace fairlead {

std::shared_ptr<ByteBudget> ByteBudget::create(Limits limits) {
  return std::shared_ptr<ByteBudget>(new ByteBudget(limits));
}

std::shared_ptr<ByteAccount> ByteBudget::account(const std::string& key) {
  const auto found = accounts_.find(key);
  if (found != accounts_.end()) {
    if (std::shared_ptr<ByteAccount> existing = found->second.lock()) return existing;
  }
  auto account = std::make_shared<ByteAccount>(shared_from_this(), key);
  accounts_[key] = account;
  return account;
}

ByteAccount::~ByteAccount() {
  const auto found = budget_->accounts_.find(key_);
  if (found != budget_->accounts_.end() && found->second.expired()) budget_->accounts_.erase(found);
}

ByteCharge& ByteCharge::operator=(ByteCharge&& other) noexcept {
  if (this == &other) return *this;
  set(0);
  account_ = std::exchange(other.account_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

ChargeOutcome ByteCharge::resize(std::size_t bytes) noexcept {
  if (account_ && bytes > bytes_) {
    const ByteBudget& budget = *account_->budget_;
    const std::size_t more = bytes - bytes_;
    const std::size_t client = budget.limits_.max_client_buffer_bytes;
    const std::size_t total = budget.limits_.max_buffer_bytes;
    if (account_->used_ > client || more > client - account_->used_) return ChargeOutcome::client_exhausted;
    if (budget.used_ > total || more > total - budget.used_) return ChargeOutcome::total_exhausted;
  }
  set(bytes);
  return ChargeOutcome::charged;
}

void ByteCharge::set(std::size_t bytes) noexcept {
  if (account_) {
    account_->used_ += bytes - bytes_;  // wraps around if the charge shrinks
    account_->budget_->used_ += bytes - bytes_;
  }
  bytes_ = bytes;
}

Error ByteCharge::refusal_error(ChargeOutcome outcome) const {
  const ByteBudgetLimits limits = account_ ? account_->budget().limits() : ByteBudgetLimits();
  if (outcome == ChargeOutcome::client_exhausted) {
    return Error(ErrorKind::resource_exhausted,
                 "resource exhausted: this client is over max_client_buffer_bytes (" +
                     std::to_string(limits.max_client_buffer_bytes) + " bytes)");
  }
  return Error(ErrorKind::resource_exhausted,
               "resource exhausted: all clients together are over max_buffer_bytes (" +
                   std::to_string(limits.max_buffer_bytes) + " bytes)");
}

}  // namespace fairlead
