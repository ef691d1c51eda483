// The changes of rows, each in one transaction. Private to the library.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "registry/write_context.hpp"

namespace fairlead::registry {

using Version = Registry::Version;

Result<ServerPtr> create_server(WriteContext& context, const json::Raw& body);
Result<ServerPtr> patch_server(WriteContext& context, const std::string& id, const json::Raw& patch,
                               const Version& version);
Result<void> remove_server(WriteContext& context, const std::string& id, const Version& version);

Result<EndpointPtr> create_endpoint(WriteContext& context, const json::Raw& body);
Result<EndpointPtr> patch_endpoint(WriteContext& context, const std::string& id, const json::Raw& patch,
                                   const Version& version);
Result<void> remove_endpoint(WriteContext& context, const std::string& id, const Version& version);

Result<UserPtr> create_user(WriteContext& context, const json::Raw& body);
Result<UserPtr> patch_user(WriteContext& context, const std::string& id, const json::Raw& patch,
                           const Version& version);
Result<void> remove_user(WriteContext& context, const std::string& id, const Version& version);

Result<GroupPtr> create_group(WriteContext& context, const json::Raw& body);
Result<GroupPtr> patch_group(WriteContext& context, const std::string& id, const json::Raw& patch,
                             const Version& version);
Result<void> remove_group(WriteContext& context, const std::string& id, const Version& version);

Result<NewToken> create_token(WriteContext& context, const json::Raw& body);
Result<TokenPtr> revoke_token(WriteContext& context, const std::string& id);
// Writes when tokens were last used.
Result<void> write_token_uses(WriteContext& context, const std::vector<std::pair<std::string, Time>>& uses);

// `secret` has the texts of the request in `server` and `user`.
Result<SecretPtr> create_secret(WriteContext& context, NewSecret secret);
Result<SecretPtr> patch_secret(WriteContext& context, const std::string& id, const json::Raw& patch,
                               const Version& version);
Result<void> remove_secret(WriteContext& context, const std::string& id, const Version& version);
Result<void> remove_secrets_of_server(WriteContext& context, const std::string& server_id);
Result<void> remove_secrets_of_user(WriteContext& context, const std::string& user_id);
// Called when the registry is opened: compares the key-encryption keys with those of the database, and
// creates the first data key. Returns the id of the key-encryption key that is in use; empty without one.
// Fails with kSecretKeyMissing or kSecretKeyMismatch.
Result<std::string> prepare_secret_keys(WriteContext& context, const SecretKeyOptions& options);
// `next_key` is called with the id of the current key-encryption key and returns that of the next one, which
// the keyring has.
Result<RekeyOutcome> rekey_secrets(WriteContext& context, const RekeyRequest& request,
                                   const std::function<Result<std::string>(std::string_view)>& next_key);

Result<void> set_config(WriteContext& context, const std::string& full_key, const json::Raw& value);

Result<DriftPtr> resolve_drift(WriteContext& context, const std::string& id, DriftStatus resolution);
struct ListLimits {
  std::size_t bytes = 0;            // max_stored_list_bytes
  std::size_t user_characters = 0;  // max_user_list_characters
};
// Compares fetched lists with the stored ones and writes what differs. Returns the lists as stored.
Result<StoredListsPtr> write_fetched_lists(WriteContext& context, const std::string& server_id,
                                           const FetchedEntries& fetched, const ListLimits& limits);

// Fills a new database: the endpoints `default` and `discover`, and `servers`.
Result<void> seed(WriteContext& context, const std::vector<Server>& servers);
// Writes the definitions of the configuration that differ from the stored ones.
Result<void> write_definitions(sql::Transaction& transaction);

}  // namespace fairlead::registry
