// Authenticator: establishes which client sends a request. It decides when the head of the request has
// arrived, before the body is read, for every route of the server. Set it as ServerOptions::authenticator;
// handlers then find the client's identity in Request::principal.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/principal.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/http/server.hpp"
#include "fairlead/loop/task.hpp"

namespace fairlead::http {

// Outcome of an authentication: either the client's principal, or the response that rejects the request.
struct Authentication {
  // REQUIRES: `client` is not null.
  explicit Authentication(PrincipalPtr client) : principal(std::move(client)) {}
  // The request is rejected with `response`, which carries the challenge, such as WWW-Authenticate.
  explicit Authentication(Response response) : refusal(std::move(response)) {}

  PrincipalPtr principal;  // null: the request is rejected with `refusal`
  Response refusal;
};

// Interface of authenticators. The functions are called on the server's loop thread. `head` is the request
// without its body; head.principal is the principal before authentication: anonymous, or on a Unix socket the
// user that runs the client's process. If a function throws, the server logs the exception and responds with
// 500.
class Authenticator {
 public:
  virtual ~Authenticator() = default;

  // Decides without waiting if that is possible, for example because the token has been verified before.
  // Returns nullopt if the decision takes time; the server then calls authenticate().
  virtual std::optional<Authentication> authenticate_now(const Request& head);
  // Decides asynchronously. `head` is valid until the task has ended. The server destroys the task if the
  // client disconnects, and if the task takes longer than ServerOptions::authentication_timeout; in that case
  // the server responds with 503.
  virtual Task<Authentication> authenticate(const Request& head) = 0;
};

// Authenticates clients by a fixed set of bearer tokens. It stores only the digests of the tokens and
// compares digests in constant time.
class StaticTokenAuthenticator final : public Authenticator {
 public:
  static constexpr std::size_t kMinTokenBytes = 16;

  explicit StaticTokenAuthenticator(std::string realm = "fairlead") : realm_(std::move(realm)) {}

  // Adds a token. Requests with this token get a copy of `principal` whose client_address is the address of
  // their connection. Fails with `validation` if the token is shorter than kMinTokenBytes or has characters
  // that are not allowed in a bearer token.
  Result<void> add(std::string_view token, Principal principal);

  std::optional<Authentication> authenticate_now(const Request& head) override;
  Task<Authentication> authenticate(const Request& head) override;

 private:
  using Digest = std::array<unsigned char, 32>;
  struct Entry {
    Digest digest{};
    PrincipalPtr principal;
  };
  static Digest digest_of(std::string_view token);
  PrincipalPtr find(std::string_view token) const;
  Authentication decide(const Request& head) const;
  Authentication reject(int status, std::string_view error, std::string_view message) const;

  std::string realm_;
  std::vector<Entry> entries_;
};

}  // namespace fairlead::http
