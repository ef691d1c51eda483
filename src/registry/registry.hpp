// Registry: the state of the registry in memory, and every change of it. The state is read on the loop
// without waiting. Changes are written to the database first and applied to the state when they are
// committed, in the order of commits. Every change passes the rules (rules.hpp), regardless of who requests
// it. Several gateways on one PostgreSQL see each other's changes. If the database is lost, the state stays
// readable and changes fail with kDatabaseUnavailable. All calls are made on the loop thread. Private to the
// library.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/log.hpp"
#include "fairlead/base/principal.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/task.hpp"
#include "registry/codes.hpp"
#include "registry/secret_key_file.hpp"
#include "registry/state.hpp"
#include "sql/database.hpp"

namespace fairlead::registry {

// The lists of a server as they were fetched. A list that is absent has not been fetched: what is stored of
// it stays.
struct FetchedEntries {
  std::optional<std::vector<json::Raw>> tools, resources, templates, prompts;
};

// A new token with its text, which is not stored.
struct NewToken {
  TokenPtr token;
  std::string text;
};

// The response to a request with an Idempotency-Key.
struct StoredResponse {
  std::string request_sha256;
  int status = 0;  // 0: the request is in progress, at this gateway or another one, or its gateway was lost
  std::string location;
  std::string etag;
  std::string body;
};

// Which keys of the secrets are replaced.
struct RekeyRequest {
  bool key = true;        // the key-encryption key
  bool data_key = false;  // the data key; all values are encrypted again
};
struct RekeyOutcome {
  std::string previous_key_id;
  std::string key_id;
  std::size_t data_keys = 0;  // that were encrypted again
  std::size_t values = 0;     // that were encrypted again
};
struct SecretKeyStatus {
  std::string key_id;  // of the key that encrypts the data keys; empty: the database has no key
  std::string source;  // where this gateway has its key from; empty: no key is configured
  std::size_t data_keys = 0;
  std::size_t secrets = 0;
  std::optional<Error> problem;  // why secrets cannot be used
};

struct RegistryOptions {
  RegistryOptions() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  Log log;
  sql::DatabaseOptions database;
  // Servers that are created if the database is new, such as the demo server. Their ids, times and versions
  // are set by the registry.
  std::vector<Server> seed;
  // How often the revision is read although no notification has arrived (PostgreSQL only).
  std::chrono::milliseconds poll_interval{5'000};
  // How often the last use of tokens is written.
  std::chrono::milliseconds token_use_interval{60'000};
  // Of one server; larger lists are not stored. The gateway accepts max_server_list_bytes (32 MiB).
  std::size_t max_stored_list_bytes = 48u << 20;
  // Of all servers of one user who is not an administrator; lists beyond it are not stored.
  std::size_t max_user_list_characters = 64u << 20;
  std::size_t max_stored_drift = 100;         // resolved changes kept for each server
  std::size_t max_stored_responses = 10'000;  // responses to requests with an Idempotency-Key
  std::size_t max_stored_changes = 100'000;   // a gateway that is further behind reads the whole database
  SecretKeyOptions secret_key;                // without a key, secrets cannot be stored
};

class Registry {
 public:
  // Opens the database, applies the migrations and reads the state.
  static Task<Result<std::shared_ptr<Registry>>> open(Loop& loop, std::string address,
                                                      RegistryOptions options = RegistryOptions());
  virtual ~Registry() = default;

  virtual const State& state() const noexcept = 0;
  // Returns why the database cannot be reached, or why changes fail; nullopt if neither is the case.
  virtual std::optional<Error> database_problem() const = 0;

  // `actor` is the client that requests a change. `version`: if set, the change fails with kVersionMismatch
  // unless the row has this version. `patch` is an RFC 7396 merge patch of the row's JSON form (json.hpp).
  // create and patch return the row as it is stored. When a call returns, the change is part of state().
  using Version = std::optional<std::int64_t>;
  virtual Task<Result<ServerPtr>> create_server(PrincipalPtr actor, json::Raw body) = 0;
  virtual Task<Result<ServerPtr>> patch_server(PrincipalPtr actor, std::string id, json::Raw patch,
                                               Version version) = 0;
  virtual Task<Result<void>> remove_server(PrincipalPtr actor, std::string id, Version version) = 0;
  virtual Task<Result<EndpointPtr>> create_endpoint(PrincipalPtr actor, json::Raw body) = 0;
  virtual Task<Result<EndpointPtr>> patch_endpoint(PrincipalPtr actor, std::string id, json::Raw patch,
                                                   Version version) = 0;
  virtual Task<Result<void>> remove_endpoint(PrincipalPtr actor, std::string id, Version version) = 0;
  virtual Task<Result<UserPtr>> create_user(PrincipalPtr actor, json::Raw body) = 0;
  virtual Task<Result<UserPtr>> patch_user(PrincipalPtr actor, std::string id, json::Raw patch,
                                           Version version) = 0;
  // Removes the user's tokens too. Fails with kInUse while the user owns servers.
  virtual Task<Result<void>> remove_user(PrincipalPtr actor, std::string id, Version version) = 0;
  virtual Task<Result<GroupPtr>> create_group(PrincipalPtr actor, json::Raw body) = 0;
  virtual Task<Result<GroupPtr>> patch_group(PrincipalPtr actor, std::string id, json::Raw patch,
                                             Version version) = 0;
  virtual Task<Result<void>> remove_group(PrincipalPtr actor, std::string id, Version version) = 0;
  virtual Task<Result<NewToken>> create_token(PrincipalPtr actor, json::Raw body) = 0;
  virtual Task<Result<TokenPtr>> revoke_token(PrincipalPtr actor, std::string id) = 0;
  // The value of a secret is in `body` and `patch` only. Without a key they fail with kSecretKeyMissing.
  virtual Task<Result<SecretPtr>> create_secret(PrincipalPtr actor, json::Raw body) = 0;
  virtual Task<Result<SecretPtr>> patch_secret(PrincipalPtr actor, std::string id, json::Raw patch,
                                               Version version) = 0;
  virtual Task<Result<void>> remove_secret(PrincipalPtr actor, std::string id, Version version) = 0;
  // Replaces the keys of the secrets in one transaction. The process may be killed at any time: the next one
  // starts with the old key or with the new one. Fails with kNoNewSecretKey if the key is not in a file that
  // the registry manages, and the configured key is the current one.
  virtual Task<Result<RekeyOutcome>> rekey_secrets(PrincipalPtr actor, RekeyRequest request) = 0;
  // Decrypts the value of a row of state(). Not for clients.
  virtual Result<SecretText> secret_value(const Secret& secret) const = 0;
  virtual SecretKeyStatus secret_key_status() const = 0;
  // Returns a digest of a text that contains a value. Nobody can guess the text without the key.
  virtual Result<std::string> secret_digest(std::string_view text) const = 0;
  // Sets a value of the configuration; absent JSON resets it to its default.
  virtual Task<Result<ConfigurationPtr>> set_config(PrincipalPtr actor, std::string full_key,
                                                    json::Raw value) = 0;
  // `resolution` is approved or rejected. A rejected entry is quarantined, whatever the policy.
  virtual Task<Result<DriftPtr>> resolve_drift(PrincipalPtr actor, std::string id,
                                               DriftStatus resolution) = 0;

  // Stores freshly fetched lists of a server: computes first and last seen, and drift by the server's policy.
  // Returns the lists as stored; their quarantined entries must not be offered. Fails with kNotFound if the
  // server was removed meanwhile. Without any list it waits until the lists submitted before are stored.
  virtual Task<Result<StoredListsPtr>> store_lists(std::string server_id, FetchedEntries lists) = 0;
  // Returns the lists with the entries that must not be offered marked as quarantined, without waiting: to
  // decide before the lists are stored, and while the database is lost. Null if all entries may be offered,
  // and if there is no such server.
  virtual StoredListsPtr preview_lists(const std::string& server_id, const FetchedEntries& lists) const = 0;
  // Records that a token was used; written to the database at most once a minute for each token.
  virtual void note_token_use(const std::string& token_id) = 0;

  // Responses to requests with an Idempotency-Key are stored for 24 hours, for each actor. claim_response()
  // records that a request is in progress and returns nullopt, or returns what is stored of an earlier one
  // with the key. Of several gateways that claim a key, one succeeds. It then stores the response, or forgets
  // the request so that it can be repeated. If it does neither, the key is free again after 10 minutes.
  virtual Task<Result<std::optional<StoredResponse>>> claim_response(std::string actor_key,
                                                                     std::string idempotency_key,
                                                                     std::string request_sha256) = 0;
  virtual Task<Result<void>> store_response(std::string actor_key, std::string idempotency_key,
                                            StoredResponse response) = 0;
  virtual Task<Result<void>> forget_request(std::string actor_key, std::string idempotency_key) = 0;

  // Called on the loop after a change has been applied to the state, whichever gateway made it. The returned
  // handle ends the subscription when it is destroyed.
  virtual std::shared_ptr<void> on_change(std::function<void(const Change&)> callback) = 0;
  virtual std::shared_ptr<void> on_lists_change(std::function<void(const ListsChange&)> callback) = 0;
  // Called when the database becomes unreachable (with the reason) or reachable again (nullopt).
  virtual std::shared_ptr<void> on_availability(
      std::function<void(const std::optional<Error>&)> callback) = 0;
  // Waits for the changes in progress and closes the database. Later changes fail with `closed`.
  virtual Task<void> close() = 0;
};

}  // namespace fairlead::registry
