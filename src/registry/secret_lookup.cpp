#include "registry/secret_lookup.hpp"

#include "base/references.hpp"
#include "registry/rows.hpp"

namespace fairlead::registry {

namespace {

// Calls `visit` for each text of the spec that may contain references, until it returns false.
void for_each_text(const pool::ServerSpec& spec, const std::function<bool(const std::string&)>& visit) {
  if (const auto* const program = std::get_if<pool::Program>(&spec.transport)) {
    for (const std::string& text : program->args) {
      if (!visit(text)) return;
    }
    for (const auto& [name, text] : program->env) {
      if (!visit(text)) return;
    }
  } else if (const auto* const address = std::get_if<pool::Address>(&spec.transport)) {
    if (!visit(address->url)) return;
    for (const auto& [name, text] : address->headers) {
      if (!visit(text)) return;
    }
  }
}

// Most texts have no reference to a secret, and are not parsed.
void add_secret_names(const std::string& text, std::set<std::string>& names) {
  if (!text.contains("${secret:")) return;
  const Result<std::vector<TextPiece>> pieces = parse_references(text);
  if (!pieces) return;
  for (const TextPiece& piece : *pieces) {
    const auto* const reference = std::get_if<Reference>(&piece);
    if (reference && reference->source == Reference::Source::secret) names.insert(reference->name);
  }
}

SecretPtr secret_of(const State& state, std::string_view server, std::string_view user,
                    std::string_view name) {
  const auto found = state.secrets_by_scope.find(secret_scope_key(server, user, name));
  return found == state.secrets_by_scope.end() ? nullptr : found->second;
}

}  // namespace

std::string_view to_string(SecretSource source) noexcept {
  switch (source) {
    case SecretSource::user: return "user";
    case SecretSource::server: return "server";
    case SecretSource::system: return "system";
    case SecretSource::missing: break;
  }
  return "missing";
}

bool has_untrusted_owner(const State& state, const Server& server) {
  if (server.owner.empty()) return false;
  const UserPtr owner = state.users.find(server.owner);
  return !owner || owner->role != Role::admin;
}

FoundSecret find_secret(const State& state, const Server& server, std::string_view user,
                        std::string_view name) {
  if (has_untrusted_owner(state, server)) {
    SecretPtr own = secret_of(state, server.id, server.owner, name);
    return own ? FoundSecret{SecretSource::user, std::move(own)} : FoundSecret();
  }
  if (!user.empty()) {
    if (SecretPtr own = secret_of(state, server.id, user, name))
      return FoundSecret{SecretSource::user, std::move(own)};
  }
  if (SecretPtr of_server = secret_of(state, server.id, "", name))
    return FoundSecret{SecretSource::server, std::move(of_server)};
  if (SecretPtr of_system = secret_of(state, "", "", name))
    return FoundSecret{SecretSource::system, std::move(of_system)};
  return FoundSecret();
}

std::set<std::string> referenced_secrets(const pool::ServerSpec& spec) {
  std::set<std::string> names;
  for_each_text(spec, [&](const std::string& text) {
    add_secret_names(text, names);
    return true;
  });
  return names;
}

bool refers_to_secret(const pool::ServerSpec& spec, std::string_view name) {
  return referenced_secrets(spec).contains(std::string(name));
}

bool has_user_values(const State& state, const Server& server) {
  if (has_untrusted_owner(state, server)) return false;
  const std::set<std::string> names = referenced_secrets(server.spec);
  if (names.empty()) return false;
  // Keys of users' values follow those of the server's own, whose user is empty.
  const std::string prefix = server.id + "\n";
  for (auto it = state.secrets_by_scope.lower_bound(prefix + "\v");
       it != state.secrets_by_scope.end() && it->first.starts_with(prefix); ++it) {
    if (names.contains(it->second->name)) return true;
  }
  return false;
}

std::string how_to_provide(const State& state, const Server& server, std::string_view name) {
  const std::string command = "`fairlead secrets set " + std::string(name) + " --server " + server.name + "`";
  if (has_untrusted_owner(state, server)) {
    const UserPtr owner = state.users.find(server.owner);
    return "The owner of the server" + (owner ? " (" + owner->name + ")" : std::string()) +
           " must provide the secret " + std::string(name) + ": " + command + ".";
  }
  return "An administrator must provide the secret " + std::string(name) + " for the server: " + command +
         "; or each user a value of their own, with the same command.";
}

}  // namespace fairlead::registry
