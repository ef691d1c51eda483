#include "admin/authenticator.hpp"

#include <openssl/crypto.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string_view>
#include <variant>

#include "admin/problem.hpp"
#include "admin/published_routes.hpp"
#include "fairlead/base/string_map.hpp"
#include "registry/rules.hpp"
#include "registry/tokens.hpp"

namespace fairlead::admin {

namespace {

constexpr std::chrono::seconds kTokenUseInterval{30};  // between two reports of the use of one token

registry::Time system_now() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

bool is_open_path(std::string_view path) noexcept {
  return path == "/healthz" || path == "/readyz" || path.starts_with("/.well-known/");
}

// Returns the token in "Bearer TOKEN"; nullopt if `credentials` have another scheme.
std::optional<std::string_view> token_in(std::string_view credentials) noexcept {
  constexpr std::string_view kScheme = "bearer ";
  if (credentials.size() <= kScheme.size() ||
      !http::equals_ignore_case(credentials.substr(0, kScheme.size()), kScheme))
    return std::nullopt;
  credentials.remove_prefix(kScheme.size());
  const std::size_t begin = credentials.find_first_not_of(' ');
  if (begin == std::string_view::npos) return std::nullopt;
  return credentials.substr(begin);
}

bool equal_in_constant_time(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::vector<std::string> groups_of(const registry::State& state, const std::string& user) {
  std::vector<std::string> groups;
  for (const auto& [id, group] : state.groups.by_id()) {
    if (std::ranges::find(group->members, user) != group->members.end()) groups.push_back(id);
  }
  return groups;
}

class RegistryAuthenticator final : public http::Authenticator {
 public:
  RegistryAuthenticator(std::shared_ptr<registry::Registry> registry, AuthOptions options)
      : registry_(std::move(registry)), mode_(std::move(options.mode)) {
    if (!options.admin_token.empty()) {
      admin_sha256_ = registry::sha256_hex(options.admin_token);
      admin_ = registry::bootstrap_principal();
    }
    subscription_ = registry_->on_change([this](const registry::Change& change) { on_change(change); });
  }

  std::optional<http::Authentication> authenticate_now(const http::Request& head) override {
    return decide(head);
  }
  Task<http::Authentication> authenticate(const http::Request& head) override { co_return decide(head); }

 private:
  // The principal of a token, and when its use was reported last.
  struct CachedToken {
    PrincipalPtr principal;
    std::chrono::steady_clock::time_point reported{};
  };

  http::Authentication decide(const http::Request& head);
  Result<PrincipalPtr> find(std::string_view token);
  Result<PrincipalPtr> principal_for(const registry::Token& token);
  void on_change(const registry::Change& change);

  std::shared_ptr<registry::Registry> registry_;
  std::function<AuthMode()> mode_;
  std::string admin_sha256_;
  PrincipalPtr admin_;
  StringMap<CachedToken> cache_;  // by the id of the token; without those that a change concerned
  std::shared_ptr<void> subscription_;
};

http::Authentication refuse(const http::Request& head, const Error& error) {
  return http::Authentication(problem_response(error, head.path(), "unauthenticated"));
}

// The answer to OPTIONS says nothing about the path, because the handlers would reveal what exists. The
// server itself answers the preflight requests of browsers.
http::Authentication options_response() {
  http::Response response(204);
  response.headers.set("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
  return http::Authentication(std::move(response));
}

http::Authentication decide_without_token(const http::Request& head, AuthMode mode) {
  if (mode == AuthMode::none || is_open_path(head.path())) return http::Authentication(head.principal);
  if (head.method == "OPTIONS") return options_response();
  return refuse(head, problem(codes::kUnauthenticated, "the request has no bearer token"));
}

// Returns the token of a request that has the header Authorization.
Result<std::string_view> token_of(const http::Request& head) {
  if (head.headers.count("Authorization") > 1)
    return problem(codes::kInvalidHeader, "Authorization occurs more than once");
  const std::optional<std::string_view> token = token_in(head.headers.get("Authorization"));
  if (!token) return problem(codes::kInvalidToken, "Authorization is not a bearer token");
  return *token;
}

http::Authentication RegistryAuthenticator::decide(const http::Request& head) {
  if (is_published_path(head.path())) return http::Authentication(head.principal);
  if (!head.headers.has("Authorization"))
    return decide_without_token(head, mode_ ? mode_() : AuthMode::token);
  const Result<std::string_view> token = token_of(head);
  if (!token) return refuse(head, token.error());
  Result<PrincipalPtr> principal = find(*token);
  if (!principal) return refuse(head, principal.error());
  return http::Authentication(std::move(*principal));
}

// The digests of tokens are looked up in a hash map: the time of the lookup reveals nothing about the tokens
// themselves.
Result<PrincipalPtr> RegistryAuthenticator::find(std::string_view token) {
  const std::string sha256 = registry::sha256_hex(token);
  if (admin_ && equal_in_constant_time(sha256, admin_sha256_)) return admin_;
  const registry::State& state = registry_->state();
  const auto found = state.tokens_by_sha256.find(sha256);
  if (found == state.tokens_by_sha256.end() || !equal_in_constant_time(found->first, sha256))
    return problem(codes::kInvalidToken, "the token is unknown");
  const registry::Token& row = *found->second;
  if (row.revoked_at) return problem(codes::kTokenRevoked, "the token was revoked");
  if (row.expires_at && *row.expires_at <= system_now())
    return problem(codes::kTokenExpired, "the token has expired");
  return principal_for(row);
}

Result<PrincipalPtr> RegistryAuthenticator::principal_for(const registry::Token& token) {
  CachedToken& cached = cache_[token.id];
  if (!cached.principal) {
    const registry::State& state = registry_->state();
    const registry::UserPtr user = state.users.find(token.user);
    if (!user || !user->enabled) {
      cache_.erase(token.id);
      return problem(codes::kUserDisabled, "the user of the token is disabled");
    }
    cached.principal = registry::principal_of(*user, &token, groups_of(state, user->id));
  }
  const auto now = std::chrono::steady_clock::now();
  if (cached.reported == std::chrono::steady_clock::time_point() ||
      now - cached.reported > kTokenUseInterval) {
    cached.reported = now;
    const PrincipalPtr principal = cached.principal;
    registry_->note_token_use(token.id);
    return principal;
  }
  return cached.principal;
}

// Removes the principals that the change concerns from the cache.
void RegistryAuthenticator::on_change(const registry::Change& change) {
  std::set<std::string, std::less<>> users;
  if (const auto* const user = std::get_if<registry::RowChange<registry::User>>(&change))
    users.insert((user->after ? user->after : user->before)->id);
  if (const auto* const group = std::get_if<registry::RowChange<registry::Group>>(&change)) {
    for (const registry::GroupPtr& row : {group->before, group->after}) {
      if (row) users.insert(row->members.begin(), row->members.end());
    }
  }
  if (const auto* const token = std::get_if<registry::RowChange<registry::Token>>(&change))
    cache_.erase((token->after ? token->after : token->before)->id);
  if (users.empty()) return;
  std::erase_if(cache_, [&](const auto& entry) {
    return !entry.second.principal || users.contains(entry.second.principal->user);
  });
}

class AdminTokenAuthenticator final : public http::Authenticator {
 public:
  explicit AdminTokenAuthenticator(std::string_view token) : sha256_(registry::sha256_hex(token)) {}

  std::optional<http::Authentication> authenticate_now(const http::Request& head) override {
    return decide(head);
  }
  Task<http::Authentication> authenticate(const http::Request& head) override { co_return decide(head); }

 private:
  http::Authentication decide(const http::Request& head) const {
    if (!head.headers.has("Authorization")) return decide_without_token(head, AuthMode::token);
    const Result<std::string_view> token = token_of(head);
    if (!token) return refuse(head, token.error());
    if (equal_in_constant_time(registry::sha256_hex(*token), sha256_)) return http::Authentication(admin_);
    return refuse(head, problem(codes::kInvalidToken, "the token is unknown"));
  }

  std::string sha256_;
  PrincipalPtr admin_ = registry::bootstrap_principal();
};

}  // namespace

std::shared_ptr<http::Authenticator> admin_token_authenticator(const std::string& admin_token) {
  return std::make_shared<AdminTokenAuthenticator>(admin_token);
}

std::shared_ptr<http::Authenticator> registry_authenticator(std::shared_ptr<registry::Registry> registry,
                                                            AuthOptions options) {
  return std::make_shared<RegistryAuthenticator>(std::move(registry), std::move(options));
}

}  // namespace fairlead::admin
