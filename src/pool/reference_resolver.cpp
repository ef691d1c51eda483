#include "pool/reference_resolver.hpp"

#include "base/references.hpp"
#include "fairlead/process/failure.hpp"
#include "http/url.hpp"
#include "process/secrets.hpp"

namespace fairlead::pool {

namespace {

using Transport = std::variant<Program, Address, ConnectorName>;
using SecretValues = std::map<std::string, StoredSecret>;

// A string of a spec that may contain references, and the configuration key of that string.
struct SpecText {
  std::string key;
  std::string* value;
};

void add_map_values(std::vector<SpecText>& texts, const std::string& key,
                    std::map<std::string, std::string>& values) {
  for (auto& [name, value] : values) texts.push_back({key + "." + name, &value});
}

std::vector<SpecText> spec_texts(Transport& transport) {
  std::vector<SpecText> texts;
  if (auto* program = std::get_if<Program>(&transport)) {
    for (std::size_t i = 0; i < program->args.size(); ++i)
      texts.push_back({"args[" + std::to_string(i) + "]", &program->args[i]});
    add_map_values(texts, "env", program->env);
  } else if (auto* address = std::get_if<Address>(&transport)) {
    texts.push_back({"url", &address->url});
    add_map_values(texts, "headers", address->headers);
  }
  return texts;
}

Error unresolved_error(const ServerSpec& spec, const std::string& key, const std::string& reason) {
  return with_failure_code(Error(ErrorKind::connection_failed,
                                 "server " + spec.name + ": `" + key + "` cannot be resolved: " + reason),
                           failure::secret_unavailable);
}

// Calls `visit` for each reference in `text`. Does nothing if `text` cannot be parsed.
void for_each_reference(const std::string& text, const std::function<void(const Reference&)>& visit) {
  const Result<std::vector<TextPiece>> pieces = parse_references(text);
  if (!pieces) return;
  for (const TextPiece& piece : *pieces)
    if (const auto* reference = std::get_if<Reference>(&piece)) visit(*reference);
}

// Returns the names of the secrets to fetch from the secret store, each with a key that refers to it.
std::map<std::string, std::string> secret_names(const std::vector<SpecText>& texts) {
  std::map<std::string, std::string> names;
  for (const SpecText& text : texts) {
    for_each_reference(*text.value, [&](const Reference& reference) {
      if (reference.source == Reference::Source::secret) names.emplace(reference.name, text.key);
    });
  }
  return names;
}

// The remedy is shown to every client, the message to administrators only.
Error missing_secret_error(const ServerSpec& spec, const std::string& name, const std::string& key,
                           const Error& reason) {
  const Error error =
      unresolved_error(spec, key, "the secret " + name + " is not available: " + reason.message());
  const std::string& remedy = reason.detail().remedy;
  if (remedy.empty()) return error;
  return Error(error).with([&](ErrorDetail& detail) {
    detail.remedy = "`" + key + "` of server " + spec.name + " refers to the secret " + name + ". " + remedy;
  });
}

Task<Result<SecretValues>> fetch_secrets(const ServerSpec& spec, std::map<std::string, std::string> names,
                                         SecretStore store, std::string user) {
  SecretValues values;
  if (!store) co_return values;
  for (const auto& [name, key] : names) {
    SecretRequest request;
    request.server = spec.name;
    request.user = user;
    request.name = name;
    Result<StoredSecret> value = co_await store(std::move(request));
    if (!value) co_return missing_secret_error(spec, name, key, value.error());
    values.emplace(name, std::move(*value));
  }
  co_return values;
}

// The limit on the secrets of one server together. They are indexed for redaction on the loop thread;
// indexing this many bytes takes about 25 ms.
constexpr std::size_t kMaxServerSecretBytes = 128u << 10;

// Returns whether the value of a user is redacted everywhere, although that user has chosen it: words of the
// program's messages have no digits.
bool is_distinctive(std::string_view value) {
  constexpr std::size_t kMinBytes = 8;
  return value.size() >= kMinBytes && !value.contains('\n') &&
         value.find_first_of("0123456789") != std::string_view::npos;
}

class ReferenceExpander {
 public:
  ReferenceExpander(const SecretValues& stored, ResolvedTransport& resolved)
      : stored_(stored), secrets_(resolved.secrets), shared_secrets_(resolved.shared_secrets) {}

  Result<std::string> expand(const std::string& text) const {
    return expand_references(text, [this](const Reference& reference) { return value_of(reference); });
  }

  // Adds the value to the secrets and returns it. Fails over kMaxServerSecretBytes.
  Result<std::string> register_secret(std::string value,
                                      SecretProvider provider = SecretProvider::administrator) const {
    std::size_t bytes = value.size();
    for (const std::string& other : secrets_) bytes += other.size();
    if (bytes > kMaxServerSecretBytes)
      return Error(ErrorKind::validation,
                   "the server's secrets together have more than "
                   "max_server_secret_bytes (" +
                       std::to_string(kMaxServerSecretBytes) + ")");
    secrets_.push_back(value);
    if (provider == SecretProvider::administrator || is_distinctive(value)) shared_secrets_.push_back(value);
    return value;
  }

 private:
  Result<std::string> value_of(const Reference& reference) const {
    const auto stored = stored_.find(reference.name);
    if (reference.source == Reference::Source::secret && stored != stored_.end())
      return register_secret(stored->second.value, stored->second.provider);
    Result<process::ReferenceValue> value = process::resolve_reference(reference);
    if (!value) return value.error();
    return value->secret ? register_secret(std::move(value->text))
                         : Result<std::string>(std::move(value->text));
  }

  const SecretValues& stored_;
  std::vector<std::string>& secrets_;
  std::vector<std::string>& shared_secrets_;
};

// Returns the secrets that can determine the host of an address: those that precede the first `/`, `?` or `#`
// after the `://` of its literal text.
std::set<std::string> secrets_of_host(const std::string& url) {
  std::set<std::string> names;
  const Result<std::vector<TextPiece>> pieces = parse_references(url);
  if (!pieces) return names;
  std::string literal;
  for (const TextPiece& piece : *pieces) {
    if (const auto* const text = std::get_if<std::string>(&piece)) literal += *text;
    const std::size_t scheme_end = literal.find("://");
    if (scheme_end != std::string::npos && literal.find_first_of("/?#", scheme_end + 3) != std::string::npos)
      break;
    const auto* const reference = std::get_if<Reference>(&piece);
    if (reference && reference->source == Reference::Source::secret) names.insert(reference->name);
  }
  return names;
}

Error host_of_caller_error(const ServerSpec& spec, const std::string& name) {
  return unresolved_error(spec, "url",
                          "the value of the caller for the secret " + name +
                              " would determine the host to which the other values are sent")
      .with([&](ErrorDetail& detail) {
        detail.remedy = "Only administrators determine the host of server " + spec.name +
                        ". Remove your own value: `fairlead secrets remove " + name + " --server " +
                        spec.name + "`.";
      });
}

Result<void> check_host(const ServerSpec& spec, const SecretValues& stored) {
  const auto* const address = std::get_if<Address>(&spec.transport);
  if (!address) return {};
  for (const std::string& name : secrets_of_host(address->url)) {
    const auto found = stored.find(name);
    if (found != stored.end() && found->second.provider == SecretProvider::caller)
      return host_of_caller_error(spec, name);
  }
  return {};
}

// Returns the reason why a value is invalid after its references were expanded, or "" if it is valid. The
// reason must not contain the value, which may be secret.
std::string expansion_problem(const std::string& key, const std::string& before, const std::string& after) {
  if (before == after) return {};
  if (key.starts_with("headers.") && after.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos)
    return "its value has a line break or a NUL byte";
  if (key != "url") return {};
  if (before.starts_with("stdio:"))
    return "a `stdio:` address must not contain references; use `command` and `args`";
  const bool is_http = before.starts_with("http") || before.starts_with("ws");
  return is_http && !http::Url::parse(after) ? "with the values of its references it is not a URL"
                                             : std::string();
}

Result<void> expand_all(const ServerSpec& spec, const ReferenceExpander& expander,
                        const std::vector<SpecText>& texts) {
  for (const SpecText& text : texts) {
    Result<std::string> value = expander.expand(*text.value);
    const std::string problem =
        value ? expansion_problem(text.key, *text.value, *value) : std::string(value.error().message());
    if (!problem.empty()) return unresolved_error(spec, text.key, problem);
    *text.value = std::move(*value);
  }
  return {};
}

// Adds the variables of `envFile`, which contain no references, to the environment.
Result<void> add_file_variables(const ServerSpec& spec, const ReferenceExpander& expander,
                                Transport& transport) {
  auto* const program = std::get_if<Program>(&transport);
  if (!program) return {};
  for (const auto& [name, value] : program->file_env) {
    if (!program->env.try_emplace(name, value).second) continue;
    const Result<std::string> registered = expander.register_secret(value);
    if (!registered) return unresolved_error(spec, "envFile", registered.error().message());
  }
  return {};
}

}  // namespace

Task<Result<ResolvedTransport>> resolve_references(const ServerSpec& spec, SecretStore store,
                                                   std::string user) {
  ResolvedTransport resolved;
  resolved.transport = spec.transport;
  const std::vector<SpecText> texts = spec_texts(resolved.transport);
  Task<Result<SecretValues>> fetching =
      fetch_secrets(spec, secret_names(texts), std::move(store), std::move(user));
  const Result<SecretValues> stored = co_await fetching;
  if (!stored) co_return stored.error();
  const Result<void> checked = check_host(spec, *stored);
  if (!checked) co_return checked.error();
  const ReferenceExpander expander(*stored, resolved);
  const Result<void> expanded = expand_all(spec, expander, texts);
  if (!expanded) co_return expanded.error();
  const Result<void> added = add_file_variables(spec, expander, resolved.transport);
  if (!added) co_return added.error();
  co_return resolved;
}

std::set<std::string> referenced_variables(const ServerSpec& spec) {
  std::set<std::string> names;
  Transport transport = spec.transport;
  for (const SpecText& text : spec_texts(transport)) {
    for_each_reference(*text.value, [&](const Reference& reference) {
      const bool variable = reference.source == Reference::Source::environment;
      if (variable && !process::is_common_variable(reference.name)) names.insert(reference.name);
    });
  }
  return names;
}

}  // namespace fairlead::pool
