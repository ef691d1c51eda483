#include "clients/entry_reader.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace fairlead::clients {

namespace {

using Transport = Draft::Transport;

struct TransportWord {
  std::string_view word;
  Transport transport;
};

constexpr std::array kTransportWords = {
    TransportWord{"stdio", Transport::stdio},
    TransportWord{"local", Transport::stdio},
    TransportWord{"http", Transport::http},
    TransportWord{"streamableHttp", Transport::http},
    TransportWord{"streamable-http", Transport::http},
    TransportWord{"streamable_http", Transport::http},
    TransportWord{"remote", Transport::http},
    TransportWord{"ws", Transport::http},
    TransportWord{"websocket", Transport::http},
    TransportWord{"sse", Transport::sse},
};

// Keys that are kept, but whose effect the gateway does not have.
struct MissingEffect {
  std::string_view key;
  std::string_view message;
};

constexpr std::array kMissingEffects = {
    MissingEffect{"headersHelper", "is a command that prints headers, which the gateway does not run"},
    MissingEffect{"http_headers_helper", "is a command that prints headers, which the gateway does not run"},
    MissingEffect{"oauth", "is kept, but the gateway does not sign in to servers with OAuth"},
    MissingEffect{"auth", "is kept, but the gateway does not sign in to servers with OAuth"},
    MissingEffect{"sandboxEnabled", "is kept, but not applied; see `containment` in docs/gateway.md"},
    MissingEffect{"required", "is kept, but the gateway starts although a server fails"},
};

std::string key_of(std::string_view key, bool escaped) {
  return escaped ? json::unescape(key) : std::string(key);
}

// Reads the members of an entry into a draft.
class EntryReader {
 public:
  EntryReader(const EntryFormat& format, Draft& draft) : format_(format), draft_(draft) {}

  void read(json::View entry) {
    entry.each_member([&](std::string_view key, bool escaped, json::View value) {
      read_member(key_of(key, escaped), value);
      return true;
    });
  }

 private:
  void read_member(const std::string& key, json::View value) {
    if (key.contains('\0')) return;
    const KeyMeaning* meaning = meaning_of(format_, key);
    if (meaning != nullptr && value.is(json::Type::null)) return;
    if (meaning != nullptr && take(*meaning, value)) return;
    keep(key, value);
    if (meaning != nullptr) {
      draft_.remark("", "`" + key + "` has a value of another type than expected, and is only kept");
      return;
    }
    for (const MissingEffect& effect : kMissingEffects)
      if (effect.key == key && value.as_bool() != false)
        draft_.remark("", "`" + key + "` " + std::string(effect.message));
  }

  void keep(const std::string& key, json::View value) {
    std::erase_if(draft_.others, [&](const auto& other) { return other.first == key; });
    draft_.others.emplace_back(key, value);
  }

  // Returns false if the value has an unexpected type.
  bool take(const KeyMeaning& key, json::View value) {
    switch (key.meaning) {
      case Meaning::command: return take_command(value);
      case Meaning::command_line: return take_command(value);
      case Meaning::args: return take_list(value, draft_.args);
      case Meaning::env: return take_env(value);
      case Meaning::env_names: return take_names(value, draft_.env_names);
      case Meaning::env_secrets: return take_names(value, draft_.env_secrets);
      case Meaning::env_file: return take_text(value, draft_.env_file);
      case Meaning::cwd: return take_text(value, draft_.cwd);
      case Meaning::url: return take_url(value, format_.url_is_sse, false);
      case Meaning::http_url: return take_url(value, false, true);
      case Meaning::sse_url: return take_url(value, true, false);
      case Meaning::headers: return take_texts(value, draft_.headers);
      case Meaning::request_options: return take_request_options(key, value);
      case Meaning::env_headers: return take_texts(value, draft_.env_headers);
      case Meaning::bearer_variable: return take_text(value, draft_.bearer_variable);
      case Meaning::api_key: return take_text(value, draft_.api_key);
      case Meaning::transport: return take_transport(value);
      default: return take_property(key, value);
    }
  }

  bool take_property(const KeyMeaning& key, json::View value) {
    switch (key.meaning) {
      case Meaning::call_timeout: return take_duration(value, key.unit, draft_.call_timeout);
      case Meaning::start_timeout: return take_duration(value, key.unit, draft_.start_timeout);
      case Meaning::timeouts: return take_timeouts(value);
      case Meaning::enabled: return take_flag(value, true);
      case Meaning::disabled: return take_flag(value, false);
      case Meaning::allow: return take_tools(value, draft_.allow);
      case Meaning::deny: return take_tools(value, draft_.deny);
      case Meaning::name: return take_text(value, draft_.title);
      case Meaning::description: return take_text(value, draft_.description);
      default: return false;
    }
  }

  // A command may be an array, or an object as Zed had it: {"path", "args", "env"}.
  bool take_command(json::View value) {
    if (value.is(json::Type::object)) {
      const json::View path = value["path"];
      if (!take_text(path, draft_.command)) return false;
      take_list(value["args"], draft_.args);
      take_env(value["env"]);
      return true;
    }
    if (!value.is(json::Type::array)) return take_text(value, draft_.command);
    std::vector<std::string> words;
    if (!take_list(value, words) || words.empty()) return false;
    draft_.command = words.front();
    draft_.args.insert(draft_.args.begin(), words.begin() + 1, words.end());
    return true;
  }

  bool take_text(json::View value, std::string& into) {
    const std::optional<std::string> text = value.absent() ? std::nullopt : text_of(value);
    if (text) into = *text;
    return text.has_value();
  }

  bool take_list(json::View value, std::vector<std::string>& into) {
    if (!value.is(json::Type::array)) return false;
    bool all = true;
    std::vector<std::string> texts;
    value.each_element([&](json::View element) {
      const std::optional<std::string> text = text_of(element, true);
      all = all && text;
      if (text) texts.push_back(*text);
      return true;
    });
    if (all) into.insert(into.end(), texts.begin(), texts.end());
    return all;
  }

  bool take_env(json::View value) {
    if (!value.is(json::Type::object)) return false;
    value.each_member([&](std::string_view key, bool escaped, json::View element) {
      const std::string name = key_of(key, escaped);
      const std::optional<std::string> text = text_of(element, true);
      if (element.is(json::Type::null)) {
        draft_.unset.push_back(name);
        draft_.remark("",
                      "the variable `" + name + "` is to be unset, which a server of the gateway cannot do");
      } else if (text && !name.empty() &&
                 name.find_first_of(std::string_view("=\0", 2)) == std::string::npos) {
        draft_.env[name] = *text;
      } else {
        draft_.remark("", "the variable `" + name + "` has no valid name or value, and is omitted");
      }
      return true;
    });
    return true;
  }

  bool take_texts(json::View value, Draft::Texts& into) {
    if (!value.is(json::Type::object)) return false;
    value.each_member([&](std::string_view key, bool escaped, json::View element) {
      const std::string name = key_of(key, escaped);
      const std::optional<std::string> text = text_of(element, true);
      if (text && !name.contains('\0')) into[name] = *text;
      if (!text) draft_.remark("", "the header `" + name + "` has no text, and is omitted");
      return true;
    });
    return true;
  }

  // A list of names, or of objects with a `name` (Codex).
  bool take_names(json::View value, std::vector<std::string>& into) {
    if (!value.is(json::Type::array)) return false;
    value.each_element([&](json::View element) {
      const std::optional<std::string> name =
          text_of(element.is(json::Type::object) ? element["name"] : element);
      if (name && !name->empty() && !name->contains('=')) into.push_back(*name);
      return true;
    });
    return true;
  }

  bool take_url(json::View value, bool is_sse, bool is_http) {
    std::string url;
    if (!take_text(value, url)) return false;
    const std::size_t first = url.find_first_not_of(" \t\r\n");
    if (first == std::string::npos) return true;
    draft_.url = url.substr(first, url.find_last_not_of(" \t\r\n") + 1 - first);
    draft_.url_is_sse = is_sse;
    draft_.url_is_http = is_http;
    return true;
  }

  bool take_request_options(const KeyMeaning& key, json::View value) {
    if (!value.is(json::Type::object)) return false;
    take_texts(value["headers"], draft_.headers);
    if (value.size() > 1) keep(std::string(key.key), value);
    return true;
  }

  bool take_transport(json::View value) {
    if (value.is(json::Type::object)) {
      read(value);
      return true;
    }
    const std::optional<std::string> word = text_of(value);
    if (!word) return false;
    const auto* const known =
        std::ranges::find(kTransportWords, std::string_view(*word), &TransportWord::word);
    if (known != kTransportWords.end()) {
      draft_.type = known->transport;
    } else {
      draft_.foreign_type = *word;
    }
    return true;
  }

  static bool take_duration(json::View value, Unit unit, std::optional<std::chrono::milliseconds>& into) {
    constexpr double kMax = 1000.0 * 60 * 60 * 24 * 365;
    const std::optional<double> number = value.absent() ? std::nullopt : value.as_double();
    if (!number) return false;
    const double milliseconds = std::round(unit == Unit::seconds ? *number * 1000 : *number);
    if (!(milliseconds >= 1 && milliseconds <= kMax)) return false;
    into = std::chrono::milliseconds(static_cast<std::int64_t>(milliseconds));
    return true;
  }

  bool take_timeouts(json::View value) {
    if (!value.is(json::Type::object)) return take_duration(value, Unit::milliseconds, draft_.start_timeout);
    take_duration(value["startup"], Unit::milliseconds, draft_.start_timeout);
    take_duration(value["request"], Unit::milliseconds, draft_.call_timeout);
    return true;
  }

  bool take_flag(json::View value, bool means) {
    const std::optional<bool> flag = value.as_bool();
    if (flag && *flag != means) draft_.enabled = false;
    return flag.has_value();
  }

  bool take_tools(json::View value, std::optional<std::vector<std::string>>& into) {
    std::vector<std::string> names;
    if (!take_list(value, names)) return false;
    if (&into == &draft_.allow && std::ranges::find(names, "*") != names.end()) return true;
    into = std::move(names);
    return true;
  }

  const EntryFormat& format_;
  Draft& draft_;
};

}  // namespace

std::optional<std::string> text_of(json::View value, bool scalars) {
  if (value.absent()) return std::nullopt;
  if (value.is(json::Type::string)) {
    std::optional<std::string> text = value.as_string();
    if (text && text->contains('\0')) return std::nullopt;
    return text;
  }
  const bool is_scalar = value.is(json::Type::number) || value.as_bool().has_value();
  return scalars && is_scalar ? std::optional(std::string(value.text())) : std::nullopt;
}

Draft read_entry(json::View entry, const EntryFormat& format) {
  Draft draft;
  EntryReader(format, draft).read(entry);
  return draft;
}

}  // namespace fairlead::clients
