// The rows of the registry: servers, endpoints, users, groups, tokens, and what the gateway remembers of each
// server. Plain data; rows are immutable once they are part of a Registry's state and are shared as
// std::shared_ptr<const T>. docs/registry.md ("Rows") documents the members.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/json/raw.hpp"
#include "fairlead/pool/server_spec.hpp"

namespace fairlead::registry {

// Points in time are milliseconds since the Unix epoch; JSON has them as RFC 3339 in UTC.
using Time = std::chrono::sys_time<std::chrono::milliseconds>;

// The clients that see a server.
enum class Visibility : std::uint8_t {
  hidden,   // administrators
  visible,  // every client
  user,     // its owner, and administrators
};
std::string_view to_string(Visibility visibility) noexcept;
std::optional<Visibility> parse_visibility(std::string_view text) noexcept;

// What happens when the schema or the description of a tool, prompt or resource changes.
enum class DriftPolicy : std::uint8_t {
  accept,      // the change is served and not recorded
  flag,        // the change is served and recorded
  quarantine,  // the change is recorded; the entry is neither listed nor callable until it is approved
};
std::string_view to_string(DriftPolicy policy) noexcept;
std::optional<DriftPolicy> parse_drift_policy(std::string_view text) noexcept;

// Rules for the tools of one server. Patterns are compared with the server's own name of the tool; `*`
// matches any text. `deny` wins over `allow`.
struct ToolRules {
  std::vector<std::string> allow;             // if not empty, only matching tools exist
  std::vector<std::string> deny;              // matching tools do not exist: not listed, not callable
  std::vector<std::string> hide;              // matching tools are callable but not listed
  std::map<std::string, std::string> rename;  // own name -> the name that replaces it in public names

  bool empty() const noexcept { return allow.empty() && deny.empty() && hide.empty() && rename.empty(); }
  bool operator==(const ToolRules&) const = default;
};

// A registered MCP server. `spec.name` equals `name` and `spec.enabled` equals `enabled`.
struct Server {
  Server() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::string id;    // UUIDv7
  std::string name;  // unique; part of the public names of its tools
  std::string title;
  std::string description;
  std::string domain;  // the subject area, for the meta-tools; may be empty
  std::vector<std::string> tags;
  Visibility visibility = Visibility::visible;
  std::string owner;  // the id of a user; empty: the administrators
  bool enabled = true;
  pool::ServerSpec spec;
  ToolRules tools;
  DriftPolicy drift = DriftPolicy::flag;
  json::Raw metadata;  // an object that is stored and returned unchanged; absent if there is none
  // How the server is published to everybody at /v0.1/servers: name, version and other members of a
  // server.json, which replace those that are derived from this row; absent: not published.
  json::Raw published;
  Time created_at{};
  Time updated_at{};
  std::int64_t version = 1;  // grows by one with each change

  const std::string& transport() const noexcept;  // "stdio" or "http"
};

// How an endpoint offers its tools.
enum class EndpointMode : std::uint8_t {
  direct,    // all tools are listed
  discover,  // the meta-tools are listed; they find and execute all others
};
std::string_view to_string(EndpointMode mode) noexcept;
std::optional<EndpointMode> parse_endpoint_mode(std::string_view text) noexcept;

// A named view of the servers at /mcp/e/{name}. The endpoint named kDefaultEndpoint is at /mcp.
inline constexpr std::string_view kDefaultEndpoint = "default";
inline constexpr std::string_view kDiscoverEndpoint = "discover";  // exists in every new database

struct Endpoint {
  Endpoint() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::string id;    // UUIDv7
  std::string name;  // unique
  std::string title;
  std::string description;
  bool enabled = true;
  EndpointMode mode = EndpointMode::direct;
  // A server is selected if its name matches a pattern of `servers` or it has one of `tags`. If both are
  // empty, every server is selected.
  std::vector<std::string> servers;
  std::vector<std::string> tags;
  // Patterns of public names at /mcp. If `tools` is not empty, only matching tools exist here; tools that
  // match `deny` do not exist here.
  std::vector<std::string> tools;
  std::vector<std::string> deny;
  std::map<std::string, std::string> rename;  // public name at /mcp -> name at this endpoint
  std::vector<std::string> pinned;            // mode discover: tools that are listed beside the meta-tools
  // Who may use the endpoint: users and members of groups, by id, and administrators. If both are empty,
  // every client that is authenticated, or every client if the gateway does not authenticate.
  std::vector<std::string> users;
  std::vector<std::string> groups;
  Time created_at{};
  Time updated_at{};
  std::int64_t version = 1;
};

enum class Role : std::uint8_t { user, admin };
std::string_view to_string(Role role) noexcept;
std::optional<Role> parse_role(std::string_view text) noexcept;

struct User {
  User() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::string id;    // UUIDv7; Principal::user of the user's requests
  std::string name;  // unique
  std::string title;
  Role role = Role::user;
  bool enabled = true;  // if false, the user's tokens are rejected
  Time created_at{};
  Time updated_at{};
  std::int64_t version = 1;
};

struct Group {
  Group() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::string id;    // UUIDv7
  std::string name;  // unique
  std::string title;
  std::vector<std::string> members;  // ids of users
  Time created_at{};
  Time updated_at{};
  std::int64_t version = 1;
};

// An API token. The token itself is shown once, when it is created, and is not stored.
struct Token {
  Token() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::string id;  // UUIDv7
  std::string name;
  std::string user;    // the id of the user on whose behalf it acts
  std::string sha256;  // of the token, in lower-case hexadecimal
  std::string prefix;  // the first characters of the token, to recognise it
  // What the token may be used for: "mcp" (every endpoint), "endpoint:NAME", "server:NAME", "admin" (every
  // area of the admin API), "admin:AREA", "admin:AREA:read". Empty: everything that its user may do.
  std::vector<std::string> scopes;
  std::optional<Time> expires_at;
  std::optional<Time> revoked_at;
  std::optional<Time> last_used_at;
  Time created_at{};
  std::int64_t version = 1;
};

// A named value that specs of servers refer to as ${secret:NAME}. The value is encrypted.
struct Secret {
  Secret() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::string id;          // UUIDv7
  std::string name;        // unique among those of the same server and user; compared with case
  std::string server;      // the id of a server; empty: of every server of administrators
  std::string user;        // the id of a user, who needs a server; empty: of every user
  std::string data_key;    // SecretDataKey::id
  std::string nonce;       // base64
  std::string ciphertext;  // base64
  Time created_at{};
  Time updated_at{};
  std::int64_t version = 1;  // grows by one with each change of the value
};

// A key that encrypts values of secrets. It is itself encrypted with a key that is not in the database.
struct SecretDataKey {
  SecretDataKey() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::string id;          // UUIDv7
  std::string key_id;      // of the key that encrypts it
  std::string nonce;       // base64
  std::string ciphertext;  // base64
  Time created_at{};
};

// One entry of a list that a server has returned.
struct ListedEntry {
  json::Raw entry;  // as the server sent it
  Time first_seen{};
  Time last_seen{};
  bool quarantined = false;  // see DriftPolicy::quarantine
};

// An entry that the server no longer lists.
struct VanishedEntry {
  std::string kind;  // as Drift::kind
  ListedEntry last;
};

// The lists of a server, as they were last fetched.
struct StoredLists {
  StoredLists() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::vector<ListedEntry> tools;
  std::vector<ListedEntry> resources;
  std::vector<ListedEntry> templates;
  std::vector<ListedEntry> prompts;
  std::vector<VanishedEntry> vanished;  // to compare with if they come back
  std::uint8_t kinds_listed = 0;        // one bit for each of the lists above that was ever fetched
  Time fetched_at{};
};

// A change of an entry of a server's list.
enum class DriftStatus : std::uint8_t {
  open,
  approved,  // the changed entry is the approved one now
  rejected,  // the changed entry is quarantined for as long as the server lists it
  reverted,  // the server no longer lists the change: the approved entry again, or a further change
};
std::string_view to_string(DriftStatus status) noexcept;
std::optional<DriftStatus> parse_drift_status(std::string_view text) noexcept;

struct Drift {
  Drift() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::string id;         // UUIDv7
  std::string server_id;  // of the row in Registry
  std::string kind;       // "tool", "resource", "template" or "prompt"
  std::string name;       // the server's own name of the entry
  json::Raw before;       // the entry as it was approved; absent if no entry of this name was
  json::Raw after;        // the entry as the server lists it now
  bool quarantined = false;
  DriftStatus status = DriftStatus::open;
  Time detected_at{};
  std::optional<Time> resolved_at;
  std::string resolved_by;  // the id of a user
};

}  // namespace fairlead::registry
