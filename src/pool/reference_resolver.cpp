#include "pool/reference_resolver.hpp"

#include "base/references.hpp"
#include "fairlead/process/failure.hpp"
#include "http/url.hpp"
#include "process/secrets.hpp"

namespace fairlead::pool {

namespace {

using Reach = std::variant<Program, Address, NamedConnector>;
using SecretValues = std::map<std::string, std::string>;

// A text of a spec that may have references, and its key.
struct Text {
  std::string key;
  std::string* value;
};

void add_map(std::vector<Text>& texts, const std::string& key, std::map<std::string, std::string>& values) {
  for (auto& [name, value] : values) texts.push_back({key + "." + name, &value});
}

std::vector<Text> texts_of(Reach& reach) {
  std::vector<Text> texts;
  if (auto* program = std::get_if<Program>(&reach)) {
    for (std::size_t i = 0; i < program->args.size(); ++i)
      texts.push_back({"args[" + std::to_string(i) + "]", &program->args[i]});
    add_map(texts, "env", program->env);
  } else if (auto* address = std::get_if<Address>(&reach)) {
    texts.push_back({"url", &address->url});
    add_map(texts, "headers", address->headers);
  }
  return texts;
}

Error unresolved(const ServerSpec& spec, const std::string& key, const std::string& why) {
  return with_failure_code(Error(ErrorKind::connection_failed,
                                 "server " + spec.name + ": `" + key + "` cannot be resolved: " + why),
                           failure::secret_unavailable);
}

// Visits the references of one text that can be parsed.
void each_reference(const std::string& text, const std::function<void(const Reference&)>& visit) {
  const Result<std::vector<TextPiece>> pieces = parse_references(text);
  if (!pieces) return;
  for (const TextPiece& piece : *pieces)
    if (const auto* reference = std::get_if<Reference>(&piece)) visit(*reference);
}

// The names that are to be asked of a secret store, each with a key that refers to it.
std::map<std::string, std::string> secret_names(const std::vector<Text>& texts) {
  std::map<std::string, std::string> names;
  for (const Text& text : texts) {
    each_reference(*text.value, [&](const Reference& reference) {
      if (reference.source == Reference::Source::secret) names.emplace(reference.name, text.key);
    });
  }
  return names;
}

Task<Result<SecretValues>> fetch_secrets(const ServerSpec& spec, std::map<std::string, std::string> names,
                                         SecretStore store) {
  SecretValues values;
  if (!store) co_return values;
  for (const auto& [name, key] : names) {
    Task<Result<std::string>> fetching = store(name);
    Result<std::string> value = co_await fetching;
    if (!value)
      co_return unresolved(spec, key, "the secret " + name + " is not available: " + value.error().message());
    values.emplace(name, std::move(*value));
  }
  co_return values;
}

// Secrets are indexed to be redacted, on the loop: this many take about 25 ms.
constexpr std::size_t kMaxServerSecretBytes = 128u << 10;

class Expansion {
 public:
  Expansion(const SecretValues& stored, std::vector<std::string>& secrets)
      : stored_(stored), secrets_(secrets) {}

  Result<std::string> expand(const std::string& text) const {
    return expand_references(text, [this](const Reference& reference) { return value_of(reference); });
  }

 private:
  Result<std::string> value_of(const Reference& reference) const {
    const auto stored = stored_.find(reference.name);
    if (reference.source == Reference::Source::secret && stored != stored_.end())
      return secret(stored->second);
    Result<process::ReferenceValue> value = process::look_up(reference);
    if (!value) return value.error();
    return value->secret ? secret(std::move(value->text)) : Result<std::string>(std::move(value->text));
  }

  Result<std::string> secret(std::string value) const {
    std::size_t bytes = value.size();
    for (const std::string& other : secrets_) bytes += other.size();
    if (bytes > kMaxServerSecretBytes)
      return Error(ErrorKind::validation,
                   "the server's secrets together have more than "
                   "max_server_secret_bytes (" +
                       std::to_string(kMaxServerSecretBytes) + ")");
    secrets_.push_back(value);
    return value;
  }

  const SecretValues& stored_;
  std::vector<std::string>& secrets_;
};

// What is wrong with a value only after its references were replaced. It must not show the value.
std::string problem_of(const std::string& key, const std::string& before, const std::string& after) {
  if (before == after) return {};
  if (key.starts_with("headers.") && after.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos)
    return "its value has a line break or a NUL byte";
  if (key != "url") return {};
  if (before.starts_with("stdio:")) return "a `stdio:` address takes no references; use `command` and `args`";
  const bool is_http = before.starts_with("http") || before.starts_with("ws");
  return is_http && !http::Url::parse(after) ? "with the values of its references it is not a URL"
                                             : std::string();
}

Result<void> expand_all(const ServerSpec& spec, const Expansion& expansion, const std::vector<Text>& texts) {
  for (const Text& text : texts) {
    Result<std::string> value = expansion.expand(*text.value);
    const std::string problem =
        value ? problem_of(text.key, *text.value, *value) : std::string(value.error().message());
    if (!problem.empty()) return unresolved(spec, text.key, problem);
    *text.value = std::move(*value);
  }
  return {};
}

}  // namespace

Task<Result<ResolvedReach>> resolve_references(const ServerSpec& spec, SecretStore store) {
  ResolvedReach resolved;
  resolved.reach = spec.reach;
  const std::vector<Text> texts = texts_of(resolved.reach);
  Task<Result<SecretValues>> fetching = fetch_secrets(spec, secret_names(texts), std::move(store));
  const Result<SecretValues> stored = co_await fetching;
  if (!stored) co_return stored.error();
  const Expansion expansion(*stored, resolved.secrets);
  const Result<void> expanded = expand_all(spec, expansion, texts);
  if (!expanded) co_return expanded.error();
  co_return resolved;
}

std::set<std::string> referenced_variables(const ServerSpec& spec) {
  std::set<std::string> names;
  Reach reach = spec.reach;
  for (const Text& text : texts_of(reach)) {
    each_reference(*text.value, [&](const Reference& reference) {
      const bool variable = reference.source == Reference::Source::environment;
      if (variable && !process::is_common_variable(reference.name)) names.insert(reference.name);
    });
  }
  return names;
}

}  // namespace fairlead::pool
