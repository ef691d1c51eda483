#include "admin/revocation.hpp"

#include <algorithm>
#include <set>
#include <variant>

#include "registry/rules.hpp"

namespace fairlead::admin {

namespace {

// A longer wait is split, because the clock may be set meanwhile.
constexpr std::chrono::milliseconds kMaxExpiryWait = std::chrono::hours(1);

registry::Time current_time() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

PrincipalSelector of_user(std::string user) {
  return [user = std::move(user)](const Principal& principal) {
    return principal.issuer == registry::kRegistryIssuer && principal.user == user;
  };
}

PrincipalSelector of_token(std::string token) {
  return [token = std::move(token)](const Principal& principal) {
    return principal.issuer == registry::kRegistryIssuer && principal.token_id == token;
  };
}

}  // namespace

RevocationWatch::RevocationWatch(Loop& loop, std::shared_ptr<registry::Registry> registry,
                                 std::function<void(const PrincipalSelector&)> on_revoked)
    : registry_(std::move(registry)), on_revoked_(std::move(on_revoked)), timer_(loop) {}

std::shared_ptr<RevocationWatch> RevocationWatch::start(
    Loop& loop, std::shared_ptr<registry::Registry> registry,
    std::function<void(const PrincipalSelector&)> on_revoked) {
  std::shared_ptr<RevocationWatch> watch(
      new RevocationWatch(loop, std::move(registry), std::move(on_revoked)));
  for (const auto& [id, token] : watch->registry_->state().tokens.by_id()) watch->set_expiry(*token);
  watch->schedule();
  watch->subscription_ = watch->registry_->on_change([self = watch.get()](const registry::Change& change) {
    if (const auto* token = std::get_if<registry::RowChange<registry::Token>>(&change))
      self->on_token(*token);
    if (const auto* user = std::get_if<registry::RowChange<registry::User>>(&change)) self->on_user(*user);
    if (const auto* group = std::get_if<registry::RowChange<registry::Group>>(&change))
      self->on_group(*group);
  });
  return watch;
}

void RevocationWatch::on_token(const registry::RowChange<registry::Token>& change) {
  if (change.before) forget_expiry(*change.before);
  if (change.after) set_expiry(*change.after);
  schedule();
  if (!change.before) return;
  const bool revoked = !change.after || (change.after->revoked_at && !change.before->revoked_at);
  const bool narrowed = change.after && change.after->scopes != change.before->scopes;
  if (revoked || narrowed) on_revoked_(of_token(change.before->id));
}

void RevocationWatch::on_user(const registry::RowChange<registry::User>& change) {
  if (!change.before) return;
  const bool lost = !change.after || (change.before->enabled && !change.after->enabled) ||
                    change.before->role != change.after->role;
  if (lost) on_revoked_(of_user(change.before->id));
}

void RevocationWatch::on_group(const registry::RowChange<registry::Group>& change) {
  if (!change.before) return;
  std::set<std::string, std::less<>> left(change.before->members.begin(), change.before->members.end());
  if (change.after) {
    for (const std::string& member : change.after->members) left.erase(member);
  }
  if (left.empty()) return;
  on_revoked_([left = std::move(left)](const Principal& principal) {
    return principal.issuer == registry::kRegistryIssuer && left.contains(principal.user);
  });
}

void RevocationWatch::set_expiry(const registry::Token& token) {
  if (token.expires_at && !token.revoked_at && *token.expires_at > current_time())
    expiries_.emplace(*token.expires_at, token.id);
}

void RevocationWatch::forget_expiry(const registry::Token& token) {
  if (!token.expires_at) return;
  const auto [begin, end] = expiries_.equal_range(*token.expires_at);
  const auto found = std::find_if(begin, end, [&](const auto& entry) { return entry.second == token.id; });
  if (found != end) expiries_.erase(found);
}

void RevocationWatch::schedule() {
  if (expiries_.empty()) return timer_.cancel();
  const std::chrono::milliseconds wait = expiries_.begin()->first - current_time();
  timer_.arm_after(std::clamp(wait, std::chrono::milliseconds(1), kMaxExpiryWait), [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->expire();
  });
}

void RevocationWatch::expire() {
  const registry::Time now = current_time();
  while (!expiries_.empty() && expiries_.begin()->first <= now) {
    const std::string token = expiries_.begin()->second;
    expiries_.erase(expiries_.begin());
    on_revoked_(of_token(token));
  }
  schedule();
}

}  // namespace fairlead::admin
