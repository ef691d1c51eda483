#include "clients/entry_writer.hpp"

#include <algorithm>
#include <optional>

#include "base/references.hpp"
#include "clients/entry_format.hpp"
#include "clients/references_out.hpp"
#include "clients/row_builder.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/pool/server_spec_json.hpp"

namespace fairlead::clients {

namespace {

using TextMap = std::map<std::string, std::string>;

void write_strings(json::Writer& out, const std::vector<std::string>& texts) {
  out.begin_array();
  for (const std::string& text : texts) out.string(text);
  out.end_array();
}

void write_map(json::Writer& out, const TextMap& texts) {
  out.begin_object();
  for (const auto& [name, text] : texts) out.key(name).string(text);
  out.end_object();
}

// A row in the terms of a client: references are translated, and what the client writes in other keys is
// there.
struct Terms {
  bool is_program = false;
  bool is_sse = false;
  std::string command;
  std::vector<std::string> args;
  TextMap env;
  std::vector<std::string> env_names;
  std::vector<std::string> env_secrets;
  std::string cwd;
  std::string url;
  TextMap headers;
  TextMap env_headers;
  std::string bearer_variable;
};

class EntryWriter {
 public:
  EntryWriter(const Client& client, const registry::Server& server, std::set<std::string>& secrets)
      : client_(client), format_(*client.entry), server_(server), spec_(server.spec), secrets_(secrets) {
    entry_.name = server.name;
    terms_.is_sse = json::View(server.metadata)["transport"].as_string() == "sse";
    kept_ = json::View(server.metadata)[client.id];
  }

  ExportedEntry write() {
    if (const auto* program = std::get_if<pool::Program>(&spec_.transport)) take(*program);
    if (const auto* address = std::get_if<pool::Address>(&spec_.transport)) take(*address);
    if (std::holds_alternative<pool::ConnectorName>(spec_.transport)) {
      remark("/config", "a `connector` exists only in this gateway");
      return std::move(entry_);
    }
    out_.begin_object();
    for (const KeyMeaning& key : format_.keys)
      if (write_meaning(key)) written_.insert(key.meaning);
    write_kept();
    out_.end_object();
    entry_.value = std::move(out_).finish();
    remark_what_is_lost();
    return std::move(entry_);
  }

 private:
  void remark(std::string pointer, std::string message) {
    entry_.remarks.push_back({std::move(pointer), std::move(message)});
  }

  bool has(Meaning meaning) const { return format_.key_for(meaning) != nullptr; }

  std::string translated(const std::string& value, const std::string& pointer, const VariableSyntax& syntax) {
    TranslatedText text = translate_for_client(value, syntax, secrets_);
    for (std::string& problem : text.problems) remark(pointer, "the value " + std::move(problem));
    return std::move(text.text);
  }

  void take(const pool::Program& program) {
    terms_.is_program = true;
    terms_.command = program.command;
    terms_.cwd = program.cwd;
    for (std::size_t i = 0; i < program.args.size(); ++i)
      terms_.args.push_back(translated(program.args[i], "/config/args/" + std::to_string(i),
                                       format_.variables.at(Position::args)));
    for (const auto& [name, value] : program.env) take_variable(name, value);
  }

  void take_variable(const std::string& name, const std::string& value) {
    const std::string pointer = "/config/env/" + name;
    const std::string secret = only_secret(value);
    if (has(Meaning::env_names) && (only_variable(value) == name || !secret.empty())) {
      terms_.env_names.push_back(name);
      if (!secret.empty()) remark(pointer, "set the variable " + name + " to the secret `" + secret + "`");
    } else if (has(Meaning::env_secrets) && !secret.empty()) {
      terms_.env_secrets.push_back(name);
      if (secret != name) remark(pointer, "store the secret `" + secret + "` as " + name + " in the keyring");
    } else {
      terms_.env[name] = translated(value, pointer, format_.variables.at(Position::env));
    }
  }

  void take(const pool::Address& address) {
    if (client_.connect_by == ConnectBy::stdio) return take_bridge(address);
    terms_.url = translated(address.url, "/config/url", format_.variables.at(Position::url));
    for (const auto& [name, value] : address.headers) take_header(name, value);
    if (terms_.is_sse && !format_.has_sse)
      remark("/metadata/transport", "the client does not support HTTP+SSE");
  }

  void take_header(const std::string& name, const std::string& value) {
    const std::string pointer = "/config/headers/" + name;
    if (!has(Meaning::env_headers)) {
      take_secret_header(value);
      terms_.headers[name] = translated(value, pointer, format_.variables.at(Position::headers));
      return;
    }
    const bool is_bearer = name == "Authorization" && value.starts_with("Bearer ");
    const std::string reference = is_bearer ? value.substr(7) : value;
    const std::string secret = only_secret(reference);
    const std::string variable = secret.empty() ? only_variable(reference) : variable_for_secret(secret);
    if (!secret.empty()) remark(pointer, "set the variable " + variable + " to the secret `" + secret + "`");
    if (variable.empty()) {
      terms_.headers[name] = translated(value, pointer, format_.variables.at(Position::headers));
    } else if (is_bearer) {
      terms_.bearer_variable = variable;
    } else {
      terms_.env_headers[name] = variable;
    }
  }

  // A secret in a header, for a client that has a keyring.
  void take_secret_header(const std::string& value) {
    const Result<std::vector<TextPiece>> pieces = parse_references(value);
    if (!has(Meaning::env_secrets) || !pieces) return;
    for (const TextPiece& piece : *pieces) {
      const auto* reference = std::get_if<Reference>(&piece);
      if (reference != nullptr && reference->source == Reference::Source::secret)
        terms_.env_secrets.push_back(variable_for_secret(reference->name));
    }
  }

  // The client starts a program that connects to the address: mcp-remote, which replaces ${NAME} itself.
  void take_bridge(const pool::Address& address) {
    const VariableSyntax bridge_syntax{.plain = true};
    const auto text = [&](const std::string& value, const std::string& pointer) {
      return translated(value, pointer, bridge_syntax);
    };
    terms_.is_program = true;
    terms_.command = "npx";
    terms_.args = {"-y", "mcp-remote", text(address.url, "/config/url")};
    if (address.url.starts_with("http:")) terms_.args.emplace_back("--allow-http");
    if (terms_.is_sse) terms_.args.insert(terms_.args.end(), {"--transport", "sse-only"});
    for (const auto& [name, value] : address.headers)
      terms_.args.insert(terms_.args.end(),
                         {"--header", name + ": " + text(value, "/config/headers/" + name)});
    remark("/config/url",
           "the client only starts programs: it connects through the bridge mcp-remote, which needs Node.js");
  }

  // Returns whether there was a value to write.
  bool write_meaning(const KeyMeaning& key) {
    if (written_.contains(key.meaning)) return false;
    switch (key.meaning) {
      case Meaning::transport: return write_text(key, transport_word());
      case Meaning::command: return write_text(key, terms_.command);
      case Meaning::command_line: return write_command_line(key);
      case Meaning::args: return write_list(key, terms_.args);
      case Meaning::env: return write_env(key);
      case Meaning::env_names: return write_list(key, terms_.env_names);
      case Meaning::env_secrets: return write_list(key, terms_.env_secrets);
      case Meaning::cwd: return write_text(key, terms_.cwd);
      case Meaning::url: return write_text(key, terms_.url);
      case Meaning::http_url: return write_text(key, terms_.is_sse ? "" : terms_.url);
      case Meaning::sse_url: return write_text(key, terms_.is_sse ? terms_.url : "");
      case Meaning::headers: return write_texts(key, terms_.headers);
      case Meaning::request_options: return write_request_options(key);
      case Meaning::env_headers: return write_texts(key, terms_.env_headers);
      case Meaning::bearer_variable: return write_text(key, terms_.bearer_variable);
      default: return write_property(key);
    }
  }

  bool write_property(const KeyMeaning& key) {
    const pool::Clocks defaults;
    switch (key.meaning) {
      case Meaning::call_timeout: return write_duration(key, spec_.clocks.idle, defaults.idle);
      case Meaning::start_timeout: return write_duration(key, spec_.clocks.handshake, defaults.handshake);
      case Meaning::timeouts: return write_timeouts(key);
      case Meaning::enabled: return write_flag(key, false);
      case Meaning::disabled: return write_flag(key, true);
      case Meaning::allow: return write_allowed(key);
      case Meaning::deny: return write_list(key, server_.tools.deny);
      case Meaning::name: return write_text(key, name_in_entry());
      case Meaning::description: return write_text(key, server_.description);
      default: return false;
    }
  }

  bool write_text(const KeyMeaning& key, std::string_view text) {
    if (text.empty() && !must_write(key.meaning)) return false;
    out_.key(key.key).string(text);
    return true;
  }
  bool write_list(const KeyMeaning& key, const std::vector<std::string>& texts) {
    if (texts.empty() && !must_write(key.meaning)) return false;
    write_strings(out_.key(key.key), texts);
    return true;
  }
  bool write_texts(const KeyMeaning& key, const TextMap& texts) {
    if (texts.empty() && !must_write(key.meaning)) return false;
    write_map(out_.key(key.key), texts);
    return true;
  }

  // Goose refuses entries without some of its keys.
  bool must_write(Meaning meaning) const {
    if (!has(Meaning::env_secrets)) return false;
    if (meaning == Meaning::description || meaning == Meaning::env_secrets) return true;
    if (meaning == Meaning::args || meaning == Meaning::env) return terms_.is_program;
    return meaning == Meaning::headers && !terms_.is_program;
  }

  bool write_command_line(const KeyMeaning& key) {
    if (!terms_.is_program) return false;
    std::vector<std::string> words = terms_.args;
    words.insert(words.begin(), terms_.command);
    return write_list(key, words);
  }

  bool write_env(const KeyMeaning& key) {
    const json::View unset = kept_["unset"];
    if (!unset.is(json::Type::array)) return write_texts(key, terms_.env);
    out_.key(key.key).begin_object();
    for (const auto& [name, text] : terms_.env) out_.key(name).string(text);
    unset.each_element([&](json::View name) {
      const std::string variable = name.as_string().value_or("");
      if (!variable.empty() && !terms_.env.contains(variable)) out_.key(variable).null();
      return true;
    });
    out_.end_object();
    return true;
  }

  bool write_request_options(const KeyMeaning& key) {
    const json::View kept = kept_[key.key];
    if (terms_.headers.empty() && !kept.is(json::Type::object)) return false;
    out_.key(key.key).begin_object();
    if (!terms_.headers.empty()) write_map(out_.key("headers"), terms_.headers);
    kept.each_member([&](std::string_view name, bool escaped, json::View value) {
      const std::string member = escaped ? json::unescape(name) : std::string(name);
      if (member != "headers") out_.key(member).raw(value.text());
      return true;
    });
    out_.end_object();
    return true;
  }

  bool write_duration(const KeyMeaning& key, std::chrono::milliseconds value,
                      std::chrono::milliseconds usual) {
    const bool goose = has(Meaning::env_secrets);  // which needs a timeout
    if (value == usual && !goose) return false;
    out_.key(key.key);
    if (key.unit == Unit::milliseconds || value.count() % 1000 == 0) {
      out_.integer(key.unit == Unit::milliseconds ? value.count() : value.count() / 1000);
    } else {
      out_.number(static_cast<double>(value.count()) / 1000);
    }
    return true;
  }

  bool write_timeouts(const KeyMeaning& key) {
    const pool::Clocks& clocks = spec_.clocks;
    const pool::Clocks defaults;
    if (clocks.idle == defaults.idle && clocks.handshake == defaults.handshake) return false;
    out_.key(key.key).begin_object();
    if (clocks.handshake != defaults.handshake) out_.key("startup").integer(clocks.handshake.count());
    if (clocks.idle != defaults.idle) out_.key("request").integer(clocks.idle.count());
    out_.end_object();
    return true;
  }

  bool write_flag(const KeyMeaning& key, bool means_disabled) {
    const bool other_key_done = written_.contains(Meaning::enabled) || written_.contains(Meaning::disabled);
    const bool goose = has(Meaning::env_secrets);
    if (other_key_done || (server_.enabled && !goose)) return false;
    out_.key(key.key).boolean(server_.enabled != means_disabled);
    return true;
  }

  // Copilot needs a list: all tools are `*`.
  bool write_allowed(const KeyMeaning& key) {
    if (!server_.tools.allow.empty()) return write_list(key, server_.tools.allow);
    return key.key == "tools" && write_list(key, {"*"});
  }

  std::string name_in_entry() const { return server_.title.empty() ? server_.name : server_.title; }

  std::string_view transport_word() const {
    if (terms_.is_program) return format_.words.stdio;
    return terms_.is_sse && !format_.words.sse.empty() ? format_.words.sse : format_.words.http;
  }

  // What the client had in an entry that was imported from it.
  void write_kept() {
    if (!kept_.is(json::Type::object)) return;
    kept_.each_member([&](std::string_view key, bool escaped, json::View value) {
      const std::string name = escaped ? json::unescape(key) : std::string(key);
      const KeyMeaning* meaning = meaning_of(format_, name);
      const bool is_ours = meaning != nullptr && written_.contains(meaning->meaning);
      if (name != "unset" && !is_ours) write_kept_value(out_.key(name), value);
      return true;
    });
  }

  void write_kept_value(json::Writer& out, json::View value) {
    if (value.is(json::Type::object)) {
      out.begin_object();
      value.each_member([&](std::string_view key, bool escaped, json::View member) {
        write_kept_value(out.key(escaped ? json::unescape(key) : std::string(key)), member);
        return true;
      });
      out.end_object();
    } else if (value.is(json::Type::array)) {
      out.begin_array();
      value.each_element([&](json::View element) { return write_kept_value(out, element), true; });
      out.end_array();
    } else if (const std::optional<std::string> text = value.as_string();
               text && !only_secret(*text).empty()) {
      out.string(translated(*text, "/metadata", format_.variables));
    } else {
      out.raw(value.text());
    }
  }

  void remark_what_is_lost() {
    const pool::Clocks defaults;
    const bool has_timeouts = has(Meaning::timeouts);
    lost(!terms_.cwd.empty() && !has(Meaning::cwd), "/config/cwd", "the working directory");
    lost(spec_.clocks.idle != defaults.idle && !has(Meaning::call_timeout) && !has_timeouts,
         "/config/clocks/idle", "the timeout of calls");
    lost(spec_.clocks.handshake != defaults.handshake && !has(Meaning::start_timeout) && !has_timeouts,
         "/config/clocks/handshake", "the timeout of the start");
    if (!server_.enabled && !has(Meaning::enabled) && !has(Meaning::disabled))
      remark("/enabled", "the client cannot disable a server in its entry");
    lost(!server_.tools.allow.empty() && !has(Meaning::allow), "/tools/allow", "the list of allowed tools");
    lost(!server_.tools.deny.empty() && !has(Meaning::deny), "/tools/deny", "the list of denied tools");
    lost(!server_.tools.hide.empty() || !server_.tools.rename.empty(), "/tools", "hidden and renamed tools");
    remark_other_config();
  }

  void lost(bool is_lost, std::string pointer, const std::string& what) {
    if (is_lost) remark(std::move(pointer), "the client has no key for " + what);
  }

  // Keys of the gateway that no client has.
  void remark_other_config() {
    const json::Raw config = pool::to_json(spec_);
    json::View(config).each_member([&](std::string_view key, bool, json::View) {
      for (const std::string_view known :
           {"command", "args", "env", "cwd", "url", "headers", "clocks", "enabled"})
        if (key == known) return true;
      remark("/config/" + std::string(key), "the client has no key for `" + std::string(key) + "`");
      return true;
    });
  }

  const Client& client_;
  const EntryFormat& format_;
  const registry::Server& server_;
  const pool::ServerSpec& spec_;
  std::set<std::string>& secrets_;
  json::View kept_;
  Terms terms_;
  std::set<Meaning> written_;
  json::Writer out_;
  ExportedEntry entry_;
};

}  // namespace

ExportedEntry entry_of(const Client& client, const registry::Server& server, std::set<std::string>& secrets) {
  return EntryWriter(client, server, secrets).write();
}

}  // namespace fairlead::clients
