#include "clients/literal_secrets.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "base/contains.hpp"
#include "clients/references_in.hpp"
#include "clients/row_strings.hpp"
#include "fairlead/json/view.hpp"

namespace fairlead::clients {

namespace {

constexpr std::size_t kMinTokenBytes = 16;  // of a value that is recognised by its prefix

constexpr std::array<std::string_view, 27> kTokenPrefixes = {
    "ghp_",     "gho_",     "ghu_",  "ghs_",  "ghr_",     "github_pat_", "glpat-",  "sk-",  "sk_live_",
    "sk_test_", "rk_live_", "xoxb-", "xoxp-", "xoxa-",    "xapp-",       "AKIA",    "AIza", "ya29.",
    "npm_",     "pypi-",    "hf_",   "eyJ",   "lin_api_", "ntn_",        "dop_v1_", "SG.",  "tvly-"};

constexpr std::array<std::string_view, 14> kSecretWords = {
    "token",  "secret", "password", "passwd", "pwd",           "pass",   "passphrase",
    "apikey", "key",    "pat",      "bearer", "authorization", "cookie", "credential"};
// Words that say that a value only describes a secret, such as GITHUB_TOKEN_FILE.
constexpr std::array<std::string_view, 17> kHarmlessWords = {
    "path", "file", "dir",  "url",    "uri",  "id",     "name",  "length", "limit",
    "max",  "min",  "type", "public", "mode", "prefix", "count", "timeout"};

char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 32) : c;
}
bool is_upper(char c) noexcept {
  return c >= 'A' && c <= 'Z';
}
bool is_alphanumeric(char c) noexcept {
  return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9');
}

// Splits a name such as GITHUB_TOKEN, X-Api-Key or apiKey into words in lower case.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool begins_word = i != 0 && is_upper(name[i]) && !is_upper(name[i - 1]);
    if ((begins_word || !is_alphanumeric(name[i])) && !words.back().empty()) words.emplace_back();
    if (is_alphanumeric(name[i])) words.back() += lower(name[i]);
  }
  return words;
}

bool has_token_prefix(std::string_view value) {
  const auto is_token_char = [](char c) {
    return is_alphanumeric(c) || c == '_' || c == '-' || c == '.' || c == '/' || c == '+' || c == '=';
  };
  return value.size() >= kMinTokenBytes && std::ranges::all_of(value, is_token_char) &&
         std::ranges::any_of(kTokenPrefixes,
                             [&](std::string_view prefix) { return value.starts_with(prefix); });
}

// Returns whether a value of a secret key is really there: not empty, a path, a flag or a placeholder.
bool can_be_secret(std::string_view value) {
  constexpr std::array<std::string_view, 6> kNoSecrets = {"", "true", "false", "null", "none", "0"};
  if (contains(kNoSecrets, value) || value.starts_with('<') || value.starts_with("~/")) return false;
  if (value.starts_with("YOUR_") || value.starts_with("your-") || value.starts_with("your_")) return false;
  return !(value.starts_with('/') && value.find('/', 1) != std::string_view::npos);
}

std::string upper_name(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool is_lower = c >= 'a' && c <= 'z';
    name += is_lower ? static_cast<char>(c - 32) : is_alphanumeric(c) ? c : '_';
  }
  return name;
}

std::string without_doubled_dollars(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    plain += text[i];
    if (text.substr(i, 2) == "$$") ++i;
  }
  return plain;
}

// A part of a string that is secret.
struct SecretPart {
  std::size_t at = 0;
  std::size_t size = 0;
  std::string name;  // of the parameter or header; empty: that of the whole value
  // Bytes around it that are replaced too: those of a reference whose default is secret.
  std::size_t before = 0;
  std::size_t after = 0;

  SecretPart moved_by(std::size_t offset) const {
    SecretPart moved = *this;
    moved.at += offset;
    return moved;
  }
};

std::optional<SecretPart> whole(std::string_view value) {
  return SecretPart{0, value.size(), ""};
}

// The part of `Authorization: Bearer x` after the scheme.
std::optional<SecretPart> credentials_in(std::string_view value) {
  const std::size_t space = value.find(' ');
  if (space == std::string_view::npos) return whole(value);
  const std::size_t begin = value.find_first_not_of(' ', space);
  if (begin == std::string_view::npos) return std::nullopt;
  return SecretPart{begin, value.size() - begin, "TOKEN"};
}

// The secret parameters of a URL. If there are several, the whole query.
std::optional<SecretPart> secret_parameter(std::string_view url) {
  const std::size_t query = url.find('?');
  if (query == std::string_view::npos) return std::nullopt;
  const std::size_t end = std::min(url.find('#', query), url.size());
  std::optional<SecretPart> found;
  for (std::size_t at = query + 1; at < end;) {
    const std::size_t next = std::min({url.find('&', at), end});
    const std::size_t equals = url.substr(0, next).find('=', at);
    const std::string_view value =
        equals == std::string_view::npos ? "" : url.substr(equals + 1, next - equals - 1);
    const std::string_view key = equals == std::string_view::npos ? "" : url.substr(at, equals - at);
    if (can_be_secret(value) && (is_secret_key(key) || has_token_prefix(value))) {
      if (found) return SecretPart{query + 1, end - query - 1, "QUERY"};
      found = SecretPart{equals + 1, value.size(), std::string(key)};
    }
    at = next + 1;
  }
  return found;
}

// The password in `scheme://user:password@host`, or everything after `://` if there are other secrets too.
std::optional<SecretPart> secret_in_url(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return std::nullopt;
  const std::size_t begin = scheme + 3;
  const std::size_t end = std::min(url.find_first_of("/?# ", begin), url.size());
  const std::size_t at = url.substr(0, end).rfind('@');
  const std::optional<SecretPart> parameter = secret_parameter(url);
  if (at == std::string_view::npos || at < begin) return parameter;
  if (parameter) return SecretPart{begin, url.size() - begin, "ADDRESS"};
  const std::size_t colon = url.substr(0, at).find(':', begin);
  const std::size_t password = colon == std::string_view::npos ? begin : colon + 1;
  if (password == at) return std::nullopt;
  return SecretPart{password, at - password, "PASSWORD"};
}

bool is_authorization(std::string_view header) {
  return words_of(header).back() == "authorization";
}

std::optional<SecretPart> secret_in_value(std::string_view key, std::string_view value) {
  if (!can_be_secret(value)) return std::nullopt;
  if (has_token_prefix(value)) return whole(value);
  if (std::optional<SecretPart> part = secret_in_url(value)) return part;
  return is_secret_key(key) && !value.contains("://") ? whole(value) : std::nullopt;
}

std::optional<SecretPart> secret_in_header(std::string_view name, std::string_view value) {
  return is_authorization(name) && can_be_secret(value) ? credentials_in(value)
                                                        : secret_in_value(name, value);
}

// The default of the first ${env:NAME:-default} whose default is secret, either by NAME or by `key`.
std::optional<SecretPart> secret_default(std::string_view key, std::string_view value) {
  constexpr std::string_view kBegin = "${env:";
  for (std::size_t at = value.find(kBegin); at != std::string_view::npos; at = value.find(kBegin, at + 1)) {
    const std::size_t end = value.find('}', at);
    const std::size_t name = at + kBegin.size();
    const std::size_t separator = value.substr(0, end).find(":-", name);
    if (end == std::string_view::npos || separator == std::string_view::npos) continue;
    const std::size_t dollars = at - (value.substr(0, at).find_last_not_of('$') + 1);
    if (dollars % 2 != 0) continue;  // `$$` is a literal `$`, and no reference follows
    const std::string variable(value.substr(name, separator - name));
    const std::string_view fallback = value.substr(separator + 2, end - separator - 2);
    if (!secret_in_value(variable, fallback) && !secret_in_value(key, fallback)) continue;
    return SecretPart{separator + 2, fallback.size(), variable, separator + 2 - at, 1};
  }
  return std::nullopt;
}

bool is_name_of(std::string_view name, std::string_view other_characters) {
  return !name.empty() && std::ranges::all_of(name, [&](char c) {
    return is_alphanumeric(c) || other_characters.contains(c);
  });
}

// Whether a value without a telling name looks like a generated credential: long, with letters and digits.
bool looks_generated(std::string_view value) {
  const auto is_digit_char = [](char c) { return c >= '0' && c <= '9'; };
  return value.size() >= kMinTokenBytes && is_name_of(value, "_=+") &&
         std::ranges::any_of(value, is_digit_char) && !std::ranges::all_of(value, is_digit_char);
}

// `Name: VALUE`, a header as an argument.
std::optional<SecretPart> secret_in_header_line(std::string_view line) {
  const std::size_t colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  if (colon == std::string_view::npos || !is_name_of(name, "-_")) return std::nullopt;
  const std::size_t begin = line.find_first_not_of(' ', colon + 1);
  if (begin == std::string_view::npos || line.substr(colon).starts_with("://")) return std::nullopt;
  std::optional<SecretPart> part = secret_in_header(name, line.substr(begin));
  if (!part) return std::nullopt;
  if (part->name.empty()) part->name = name;
  return part->moved_by(begin);
}

// --token=VALUE, NAME=VALUE, or `--header=Name: VALUE`.
std::optional<SecretPart> secret_in_assignment(std::string_view argument) {
  const std::size_t equals = argument.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  const std::string_view key = argument.substr(0, equals);
  if (!is_name_of(key, "-_.")) return std::nullopt;
  const std::string_view value = argument.substr(equals + 1);
  if (std::optional<SecretPart> header = secret_in_header_line(value)) return header->moved_by(equals + 1);
  std::optional<SecretPart> part = secret_in_value(key, value);
  if (!part) return std::nullopt;
  if (part->name.empty()) part->name = key;
  return part->moved_by(equals + 1);
}

// The value after an option such as --token, -token or -k.
std::optional<SecretPart> secret_after_option(std::string_view option, std::string_view value) {
  constexpr std::array<std::string_view, 3> kShortOptions = {"-k", "-t", "-p"};  // key, token, password
  if (!option.starts_with('-') || option.contains('=') || value.starts_with('-')) return std::nullopt;
  const bool is_short = contains(kShortOptions, option);
  const bool is_secret = is_short ? looks_generated(value) : is_secret_key(option) && can_be_secret(value);
  if (!is_secret) return std::nullopt;
  return SecretPart{0, value.size(), is_short ? "TOKEN" : std::string(option)};
}

std::optional<SecretPart> secret_in_argument(std::string_view previous, std::string_view value) {
  if (std::optional<SecretPart> header = secret_in_header_line(value)) return header;
  if (std::optional<SecretPart> assigned = secret_in_assignment(value)) return assigned;
  if (std::optional<SecretPart> part = secret_in_url(value)) return part;
  if (std::optional<SecretPart> part = secret_after_option(previous, value)) return part;
  if (value.starts_with("Bearer ") || value.starts_with("Basic ")) return credentials_in(value);
  return has_token_prefix(value) ? whole(value) : std::nullopt;
}

// Returns the name that an argument gives its value: that before `=` or `:`, or the option before it.
std::string_view name_in_argument(std::string_view previous, std::string_view value) {
  const std::string_view name = value.substr(0, value.find_first_of("=:"));
  return name.size() < value.size() && is_name_of(name, "-_.") ? name : previous;
}

// Reads the strings of a row in order.
class SecretFinder {
 public:
  SecretFinder(std::string_view server, SecretNames& names) : server_(upper_name(server)), names_(names) {}

  void look_at(const std::string& pointer, const std::string& value) {
    const std::string previous = std::exchange(previous_, value);
    const std::size_t slash = pointer.rfind('/');
    const std::string key = unescaped(pointer.substr(slash + 1));
    std::optional<SecretPart> part;
    if (pointer.starts_with("/config/env/")) {
      part = secret_in_value(key, value);
    } else if (pointer.starts_with("/config/headers/")) {
      part = secret_in_header(key, value);
    } else if (pointer.starts_with("/config/args/")) {
      part = secret_in_argument(previous, value);
    } else if (pointer == "/config/url") {
      part = secret_in_url(value);
    } else if (pointer.starts_with("/metadata/")) {
      part = is_secret_key(key) && can_be_secret(value) ? whole(value) : std::nullopt;
    }
    if (part && value.substr(part->at, part->size).contains("${")) part.reset();
    const bool is_argument = pointer.starts_with("/config/args/");
    if (!part && pointer.starts_with("/config/"))
      part = secret_default(is_argument ? name_in_argument(previous, value) : key, value);
    if (!part) return;
    const bool is_whole_variable =
        is_environment(pointer) && part->before + part->size + part->after == value.size();
    add(pointer, value, *part, is_whole_variable ? key : "", key);
  }

  std::vector<LiteralSecret> finish() { return std::move(found_); }

 private:
  static bool is_environment(std::string_view pointer) { return pointer.starts_with("/config/env/"); }

  static std::string unescaped(std::string segment) {
    for (std::size_t at = segment.find('~'); at != std::string::npos; at = segment.find('~', at + 1))
      segment.replace(at, 2, segment.substr(at + 1, 1) == "1" ? "/" : "~");
    return segment;
  }

  void add(const std::string& pointer, const std::string& text, const SecretPart& part,
           const std::string& variable, const std::string& key) {
    const std::string escaped = text.substr(part.at, part.size);
    const bool is_reference_text = pointer.starts_with("/config/");
    const std::string value = is_reference_text ? without_doubled_dollars(escaped) : escaped;
    const bool is_index = std::ranges::all_of(key, [](char c) { return c >= '0' && c <= '9'; });
    std::string last = part.name.empty() ? (is_index ? "TOKEN" : key) : part.name;
    last.erase(0, std::min(last.find_first_not_of('-'), last.size()));
    const std::string own = secret_name_of(server_ + "_" + upper_name(last));
    const std::string name = names_.name_for(variable.empty() ? own : secret_name_of(variable), own, value);
    found_.push_back({pointer, name, value,
                      text.substr(0, part.at - part.before) + "${secret:" + name + "}" +
                          text.substr(part.at + part.size + part.after)});
  }

  std::string server_;
  SecretNames& names_;
  std::string previous_;
  std::vector<LiteralSecret> found_;
};

}  // namespace

std::string SecretNames::name_for(const std::string& wanted, const std::string& fallback,
                                  const std::string& value) {
  std::string name = wanted;
  for (int number = 1;; ++number) {
    const auto [place, inserted] = values_.try_emplace(name, value);
    if (inserted || place->second == value) return name;
    name = number == 1 ? fallback : fallback + "_" + std::to_string(number);
  }
}

bool is_secret_key(std::string_view name) {
  const std::vector<std::string> words = words_of(name);
  if (std::ranges::any_of(words, [](const std::string& word) { return contains(kHarmlessWords, word); }))
    return false;
  return std::ranges::any_of(words, [](const std::string& word) {
    return contains(kSecretWords, word) || word.ends_with("token") || word.ends_with("secret") ||
           word.ends_with("password") || word.ends_with("apikey") || word == "credentials";
  });
}

std::vector<LiteralSecret> find_literal_secrets(const json::Raw& row, std::string_view server,
                                                SecretNames& names) {
  SecretFinder finder(server, names);
  change_strings(json::View(row), [&](const std::string& pointer, const std::string& value) {
    finder.look_at(pointer, value);
    return std::optional<std::string>();
  });
  return finder.finish();
}

}  // namespace fairlead::clients
