// The kinds of rows that rows.hpp serves. Private to the layer.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "admin/query.hpp"
#include "registry/registry.hpp"
#include "registry/rules.hpp"

namespace fairlead::admin {

// The filter `name`: a name, or a pattern in which `*` matches any text.
struct NameFilter {
  std::string name;

  bool has_exact_name() const noexcept { return !name.empty() && name.find('*') == std::string::npos; }
  bool matches_name(std::string_view text) const;
};

// Returns the value of a parameter that is true or false; nullopt if it is absent.
Result<std::optional<bool>> boolean_parameter(const Query& query, std::string_view name);

struct ServerKind {
  using Row = registry::Server;
  using Ptr = registry::ServerPtr;
  static constexpr std::string_view kList = "servers", kNoun = "server", kPath = "/mcp/servers";
  static constexpr bool kFindByName = true;

  struct Filter : NameFilter {
    std::optional<bool> enabled;
    std::optional<registry::Visibility> visibility;
    std::optional<std::string> tag;
    std::optional<std::string> domain;

    static Result<Filter> parse(const Query& query);
    bool matches(const Row& row) const;
  };

  static const registry::Table<Row>& table(const registry::State& state) { return state.servers; }
  // Secrets are redacted for clients that are neither administrators nor the owner.
  static json::Raw json(const Principal& reader, const Row& row);
  static Task<Result<Ptr>> create(registry::Registry& registry, PrincipalPtr actor, json::Raw body) {
    return registry.create_server(std::move(actor), std::move(body));
  }
  static Task<Result<Ptr>> patch(registry::Registry& registry, PrincipalPtr actor, std::string id,
                                 json::Raw patch, std::optional<std::int64_t> version) {
    return registry.patch_server(std::move(actor), std::move(id), std::move(patch), version);
  }
  static Task<Result<void>> remove(registry::Registry& registry, PrincipalPtr actor, std::string id,
                                   std::optional<std::int64_t> version) {
    return registry.remove_server(std::move(actor), std::move(id), version);
  }
};

struct EndpointKind {
  using Row = registry::Endpoint;
  using Ptr = registry::EndpointPtr;
  static constexpr std::string_view kList = "endpoints", kNoun = "endpoint", kPath = "/endpoints";
  static constexpr bool kFindByName = true;

  struct Filter : NameFilter {
    std::optional<bool> enabled;

    static Result<Filter> parse(const Query& query);
    bool matches(const Row& row) const;
  };

  static const registry::Table<Row>& table(const registry::State& state) { return state.endpoints; }
  static json::Raw json(const Principal& reader, const Row& row);
  static Task<Result<Ptr>> create(registry::Registry& registry, PrincipalPtr actor, json::Raw body) {
    return registry.create_endpoint(std::move(actor), std::move(body));
  }
  static Task<Result<Ptr>> patch(registry::Registry& registry, PrincipalPtr actor, std::string id,
                                 json::Raw patch, std::optional<std::int64_t> version) {
    return registry.patch_endpoint(std::move(actor), std::move(id), std::move(patch), version);
  }
  static Task<Result<void>> remove(registry::Registry& registry, PrincipalPtr actor, std::string id,
                                   std::optional<std::int64_t> version) {
    return registry.remove_endpoint(std::move(actor), std::move(id), version);
  }
};

struct UserKind {
  using Row = registry::User;
  using Ptr = registry::UserPtr;
  static constexpr std::string_view kList = "users", kNoun = "user", kPath = "/users";
  static constexpr bool kFindByName = true;

  struct Filter : NameFilter {
    std::optional<bool> enabled;
    std::optional<registry::Role> role;

    static Result<Filter> parse(const Query& query);
    bool matches(const Row& row) const;
  };

  static const registry::Table<Row>& table(const registry::State& state) { return state.users; }
  static json::Raw json(const Principal& reader, const Row& row);
  static Task<Result<Ptr>> create(registry::Registry& registry, PrincipalPtr actor, json::Raw body) {
    return registry.create_user(std::move(actor), std::move(body));
  }
  static Task<Result<Ptr>> patch(registry::Registry& registry, PrincipalPtr actor, std::string id,
                                 json::Raw patch, std::optional<std::int64_t> version) {
    return registry.patch_user(std::move(actor), std::move(id), std::move(patch), version);
  }
  static Task<Result<void>> remove(registry::Registry& registry, PrincipalPtr actor, std::string id,
                                   std::optional<std::int64_t> version) {
    return registry.remove_user(std::move(actor), std::move(id), version);
  }
};

struct GroupKind {
  using Row = registry::Group;
  using Ptr = registry::GroupPtr;
  static constexpr std::string_view kList = "groups", kNoun = "group", kPath = "/groups";
  static constexpr bool kFindByName = true;

  struct Filter : NameFilter {
    static Result<Filter> parse(const Query& query);
    bool matches(const Row& row) const { return matches_name(row.name); }
  };

  static const registry::Table<Row>& table(const registry::State& state) { return state.groups; }
  static json::Raw json(const Principal& reader, const Row& row);
  static Task<Result<Ptr>> create(registry::Registry& registry, PrincipalPtr actor, json::Raw body) {
    return registry.create_group(std::move(actor), std::move(body));
  }
  static Task<Result<Ptr>> patch(registry::Registry& registry, PrincipalPtr actor, std::string id,
                                 json::Raw patch, std::optional<std::int64_t> version) {
    return registry.patch_group(std::move(actor), std::move(id), std::move(patch), version);
  }
  static Task<Result<void>> remove(registry::Registry& registry, PrincipalPtr actor, std::string id,
                                   std::optional<std::int64_t> version) {
    return registry.remove_group(std::move(actor), std::move(id), version);
  }
};

// Names of secrets are unique for one server and user only.
struct SecretKind {
  using Row = registry::Secret;
  using Ptr = registry::SecretPtr;
  static constexpr std::string_view kList = "secrets", kNoun = "secret", kPath = "/secrets";
  static constexpr bool kFindByName = false;

  struct Filter : NameFilter {
    std::optional<std::string> server;
    std::optional<std::string> user;

    static Result<Filter> parse(const Query& query);
    bool matches(const Row& row) const;
  };

  static const registry::Table<Row>& table(const registry::State& state) { return state.secrets; }
  static json::Raw json(const Principal& reader, const Row& row);
  static Task<Result<Ptr>> create(registry::Registry& registry, PrincipalPtr actor, json::Raw body) {
    return registry.create_secret(std::move(actor), std::move(body));
  }
  static Task<Result<Ptr>> patch(registry::Registry& registry, PrincipalPtr actor, std::string id,
                                 json::Raw patch, std::optional<std::int64_t> version) {
    return registry.patch_secret(std::move(actor), std::move(id), std::move(patch), version);
  }
  static Task<Result<void>> remove(registry::Registry& registry, PrincipalPtr actor, std::string id,
                                   std::optional<std::int64_t> version) {
    return registry.remove_secret(std::move(actor), std::move(id), version);
  }
};

// Names of tokens are not unique. Tokens are created and revoked by handlers of their own.
struct TokenKind {
  using Row = registry::Token;
  using Ptr = registry::TokenPtr;
  static constexpr std::string_view kList = "tokens", kNoun = "token", kPath = "/tokens";
  static constexpr bool kFindByName = false;

  struct Filter : NameFilter {
    std::optional<std::string> user;

    static Result<Filter> parse(const Query& query);
    bool matches(const Row& row) const;
  };

  static const registry::Table<Row>& table(const registry::State& state) { return state.tokens; }
  static json::Raw json(const Principal& reader, const Row& row);
};

}  // namespace fairlead::admin
