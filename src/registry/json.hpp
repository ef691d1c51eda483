// The JSON form of the rows, as the admin API shows it. Bodies of requests are validated here: errors are of
// kind validation with the code kInvalidRow, a message that says what is wrong, and the JSON pointer of the
// member. parse_T(to_json(row)) yields the row. docs/registry.md ("Rows") documents the members. Private to
// the library.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "fairlead/base/result.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/registry/model.hpp"
#include "registry/secret_cipher.hpp"

namespace fairlead::registry {

// Whether the JSON form of a row has what only administrators and the owner of a server may read.
enum class Redaction : std::uint8_t {
  none,
  // For other clients that see the server: arguments, values of `env` and `headers`, and the user and query
  // of the URL are replaced by "***"; `cwd` and `metadata` are omitted. Must never be written back.
  secrets,
};

json::Raw to_json(const Server& server, Redaction redaction = Redaction::none);
json::Raw to_json(const Endpoint& endpoint, Redaction redaction = Redaction::none);
json::Raw to_json(const User& user);
json::Raw to_json(const Group& group);
json::Raw to_json(const Token& token);  // without the digest of the token
json::Raw to_json(const Drift& drift);
json::Raw to_json(const Secret& secret);  // without the encrypted value
// {"entry":…,"firstSeen":…,"lastSeen":…,"quarantined":…}
json::Raw to_json(const ListedEntry& entry);

// For the database: a token with its digest.
json::Raw to_stored_json(const Token& token);
// For the database: with the encrypted value, and with the encrypted key.
json::Raw to_stored_json(const Secret& secret);
json::Raw to_stored_json(const SecretDataKey& key);

// Read a complete row, as to_json() or to_stored_json() has written it. `id`, the times and `version` may be
// absent. The text of a document may be any valid JSON, also from a hostile client.
Result<Server> parse_server(json::View document);
Result<Endpoint> parse_endpoint(json::View document);
Result<User> parse_user(json::View document);
Result<Group> parse_group(json::View document);
Result<Token> parse_token(json::View document);
Result<Drift> parse_drift(json::View document);
Result<Secret> parse_secret(json::View document);
Result<SecretDataKey> parse_secret_data_key(json::View document);

// Values of members that the body of a new server lacks: defaults_for() of rules.hpp.
struct ServerDefaults {
  ServerDefaults() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  Visibility visibility = Visibility::visible;
  std::string owner;
  DriftPolicy drift = DriftPolicy::flag;
};

// Read the body of a request that creates a row. Bodies of more than max_row_bytes and members that the
// registry sets (`id`, `createdAt`, `updatedAt`, `version`) are rejected. The row has neither id nor times.
Result<Server> new_server(json::View body, const ServerDefaults& defaults = ServerDefaults());
Result<Endpoint> new_endpoint(json::View body);
Result<User> new_user(json::View body);
Result<Group> new_group(json::View body);
// {"user","name"?,"scopes"?,"expires"?}: Token::user is the text of the request, an id or a name. `expires`
// is a time (RFC 3339) later than `now` or a duration such as "90d" or "12h".
Result<Token> new_token(json::View body, Time now);

// A secret and its value, which is not encrypted yet.
struct NewSecret {
  Secret row;
  SecretText value;
};
// {"name","value","server"?,"user"?}: Secret::server and Secret::user are the texts of the request, each an
// id or a name. Messages do not contain the value.
Result<NewSecret> new_secret(json::View body);
// {"value"}: returns the new value. Other members must be equal to those of `row`.
Result<SecretText> patched_value(const Secret& row, json::View patch);
// Returns why a text cannot be the name of a secret; nullopt if it can.
std::optional<std::string> secret_name_problem(std::string_view name);

// Return the row after a merge patch (RFC 7396). Members that the registry sets must be absent from `patch`
// or equal to those of `row`. The version is that of `row`.
Result<Server> patched(const Server& row, json::View patch);
Result<Endpoint> patched(const Endpoint& row, json::View patch);
Result<User> patched(const User& row, json::View patch);
Result<Group> patched(const Group& row, json::View patch);

// Applies a merge patch (RFC 7396). Members of `document` that the patch does not name keep their bytes.
// Fails if `patch` is not an object, repeats a member name, or is nested too deeply.
Result<json::Raw> merge_patch(json::View document, json::View patch);
// Returns the smallest merge patch that turns `before` into `after`, both objects; {} if they are equal. A
// member that is null in `after` cannot be expressed and is left out by the patch.
json::Raw merge_difference(json::View before, json::View after);

// Fails unless `body` is an object of at most max_row_bytes that is nested at most max_row_depth levels deep,
// repeats no member name, and has no NUL character in a string or name.
Result<void> check_body(json::View body);

}  // namespace fairlead::registry
