#include "clients/own_entry.hpp"

#include "clients/entry_format.hpp"
#include "fairlead/json/writer.hpp"

namespace fairlead::clients {

namespace {

constexpr int kGooseTimeoutSeconds = 300;  // of a call

Result<std::string> variable_reference(const Client& client, const std::string& name, Position position) {
  const VariableSyntax syntax = client.entry->variables.at(position);
  if (syntax.env) return "${env:" + name + "}";
  if (syntax.plain) return "${" + name + "}";
  if (syntax.dollar) return "$" + name;
  if (syntax.braces) return "{env:" + name + "}";
  if (syntax.mustache) return "${{ secrets." + name + " }}";
  return Error(ErrorKind::validation,
               std::string(client.title) +
                   " does not replace variables there: pass the token itself, with --token-file or "
                   "--create-token");
}

void write_headers(json::Writer& out, std::string_view key, const std::string& authorization) {
  out.key(key).begin_object().key("Authorization").string(authorization).end_object();
}

Result<void> write_token(json::Writer& out, const Client& client, const OwnEntry& own) {
  if (own.token.empty() && own.token_variable.empty()) return {};
  const EntryFormat& format = *client.entry;
  if (const KeyMeaning* key = format.key_for(Meaning::bearer_variable); key && own.token.empty()) {
    out.key(key->key).string(own.token_variable);
    return {};
  }
  Result<std::string> value = own.token;
  if (own.token.empty()) value = variable_reference(client, own.token_variable, Position::headers);
  if (!value) return value.error();
  if (const KeyMeaning* key = format.key_for(Meaning::headers)) {
    write_headers(out, key->key, "Bearer " + *value);
  } else if (const KeyMeaning* options = format.key_for(Meaning::request_options)) {
    out.key(options->key).begin_object();
    write_headers(out, "headers", "Bearer " + *value);
    out.end_object();
  } else {
    return Error(ErrorKind::validation, std::string(client.title) + " cannot send a token to a URL");
  }
  return {};
}

void write_command(json::Writer& out, const Client& client, const std::vector<std::string>& command) {
  const EntryFormat& format = *client.entry;
  const KeyMeaning* const line = format.key_for(Meaning::command_line);
  if (line) {
    out.key(line->key).begin_array();
    for (const std::string& word : command) out.string(word);
    out.end_array();
    return;
  }
  const KeyMeaning* const program = format.key_for(Meaning::command);
  const KeyMeaning* const args = format.key_for(Meaning::args);
  out.key(program ? program->key : "command").string(command.front());
  out.key(args ? args->key : "args").begin_array();
  for (std::size_t i = 1; i < command.size(); ++i) out.string(command[i]);
  out.end_array();
}

// The token of a command is in its environment, where other users cannot read it.
Result<void> write_environment(json::Writer& out, const Client& client, const OwnEntry& own) {
  if (own.token.empty() && own.token_variable.empty()) return {};
  const KeyMeaning* const key = client.entry->key_for(Meaning::env);
  Result<std::string> value = own.token;
  if (own.token.empty()) value = variable_reference(client, own.token_variable, Position::env);
  if (!value) return value.error();
  out.key(key ? key->key : "env").begin_object().key("FAIRLEAD_TOKEN").string(*value).end_object();
  return {};
}

// What Goose needs in every entry besides the address or the command, or it refuses the entry.
void write_goose_keys(json::Writer& out, const OwnEntry& own) {
  const bool has_token = !own.token.empty() || !own.token_variable.empty();
  out.key("name").string("fairlead").key("description").string("").key("enabled").boolean(true);
  out.key("timeout").integer(kGooseTimeoutSeconds);
  out.key("env_keys").begin_array();
  if (!own.token_variable.empty()) out.string(own.token_variable);
  out.end_array();
  if (!has_token) out.key(own.command.empty() ? "headers" : "envs").begin_object().end_object();
}

}  // namespace

Result<json::Raw> make_own_entry(const Client& client, const OwnEntry& own) {
  const EntryFormat& format = *client.entry;
  const bool remote = own.command.empty();
  json::Writer out;
  out.begin_object();
  const KeyMeaning* const type = format.key_for(Meaning::transport);
  const std::string_view word = remote ? format.words.http : format.words.stdio;
  if (type && !word.empty()) out.key(type->key).string(word);
  if (client.id == "goose") write_goose_keys(out, own);
  if (remote) {
    const KeyMeaning* url = format.key_for(Meaning::http_url);
    if (!url) url = format.key_for(Meaning::url);
    if (!url) return Error(ErrorKind::validation, std::string(client.title) + " does not connect to URLs");
    out.key(url->key).string(own.url);
    const Result<void> written = write_token(out, client, own);
    if (!written) return written.error();
  } else {
    write_command(out, client, own.command);
    const Result<void> written = write_environment(out, client, own);
    if (!written) return written.error();
  }
  if (client.id == "copilot-cli") out.key("tools").begin_array().string("*").end_array();
  out.end_object();
  return std::move(out).finish();
}

KeyRole role_of_key(const Client& client, std::string_view key, bool is_remote) {
  const KeyMeaning* const found = meaning_of(*client.entry, key);
  if (!found) return KeyRole::other;
  switch (found->meaning) {
    case Meaning::command:
    case Meaning::command_line:
    case Meaning::args:
    case Meaning::url:
    case Meaning::http_url:
    case Meaning::sse_url:
    case Meaning::headers:
    case Meaning::request_options:
    case Meaning::env_headers:
    case Meaning::bearer_variable:
    case Meaning::api_key:
    case Meaning::transport: return KeyRole::connection;
    case Meaning::env: return is_remote ? KeyRole::connection : KeyRole::environment;
    case Meaning::env_names:
    case Meaning::env_secrets:
    case Meaning::env_file:
    case Meaning::cwd: return is_remote ? KeyRole::connection : KeyRole::other;
    default: return KeyRole::other;
  }
}

bool has_token(const Client& client, json::View entry) {
  bool found = false;
  entry.each_member([&](std::string_view key, bool escaped, json::View value) {
    const KeyMeaning* const known =
        meaning_of(*client.entry, escaped ? json::unescape(key) : std::string(key));
    if (!known || !value.is(json::Type::object)) return true;
    const json::View headers = known->meaning == Meaning::request_options ? value["headers"] : value;
    for (const char* const name : {"Authorization", "FAIRLEAD_TOKEN"}) {
      const std::string text = headers[name].as_string().value_or("");
      found = found || (!text.empty() && text.find_first_of("${") == std::string::npos);
    }
    return !found;
  });
  return found;
}

bool is_remote_entry(const Client& client, json::View entry) {
  bool has_url = false;
  entry.each_member([&](std::string_view key, bool escaped, json::View) {
    const KeyMeaning* const found =
        meaning_of(*client.entry, escaped ? json::unescape(key) : std::string(key));
    has_url = found && (found->meaning == Meaning::url || found->meaning == Meaning::http_url ||
                        found->meaning == Meaning::sse_url);
    return !has_url;
  });
  return has_url;
}

}  // namespace fairlead::clients
