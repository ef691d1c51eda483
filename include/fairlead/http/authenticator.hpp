// Authenticator: establishes which client sends a request, before its body is read, on every route. Set it as
// ServerOptions::authenticator; handlers then find the client's identity in Request::principal.
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

// The outcome: the client's principal, or the response that refuses the request.
struct Authentication {
  // REQUIRES: `who` is not null.
  explicit Authentication(PrincipalPtr who) : principal(std::move(who)) {}
  // With its challenge, such as WWW-Authenticate.
  explicit Authentication(Response answer) : refusal(std::move(answer)) {}

  PrincipalPtr principal;  // null: refused
  Response refusal;
};

// Called on the server's loop. `head` is the request without its body; its `principal` is what the connection
// itself says: anonymous, or the user at the other end of a Unix socket. Exceptions are logged and answered
// with 500.
class Authenticator {
 public:
  virtual ~Authenticator() = default;

  // Decides without waiting, where that is possible, such as by a token checked before. Absent:
  // authenticate() decides.
  virtual std::optional<Authentication> authenticate_now(const Request& head);
  // `head` is valid until the task has ended. The task is destroyed when the client disconnects, or when
  // ServerOptions::authentication_timeout has passed, which is answered with 503.
  virtual Task<Authentication> authenticate(const Request& head) = 0;
};

// Bearer tokens that are known in advance. Keeps digests only, and compares each in constant time.
class StaticTokenAuthenticator final : public Authenticator {
 public:
  static constexpr std::size_t kMinTokenBytes = 16;

  explicit StaticTokenAuthenticator(std::string realm = "fairlead") : realm_(std::move(realm)) {}

  // Requests with this token are the principal's; its client_address is set for each connection. Kind
  // validation for a token that is too short, or that an Authorization field cannot carry.
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
  Authentication refuse(int status, std::string_view error, std::string_view message) const;

  std::string realm_;
  std::vector<Entry> entries_;
};

}  // namespace fairlead::http
