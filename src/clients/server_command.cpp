#include "clients/server_command.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "base/contains.hpp"

namespace fairlead::clients {

namespace {

constexpr std::string_view kSpaces = " \t\r\n";
constexpr std::size_t kMaxExpandedHeader = 64u << 10;  // variables are not replaced beyond it

bool is_space(char c) {
  return kSpaces.contains(c);
}

bool is_url(std::string_view text) {
  return text.starts_with("http://") || text.starts_with("https://");
}

// Returns whether a `command` is a whole command line: it has white space, and its first word is not the
// beginning of a path, which may itself have spaces.
bool is_command_line(const std::string& command) {
  const std::size_t space = command.find_first_of(kSpaces);
  if (space == std::string::npos) return false;
  if (command.starts_with('"') || command.starts_with('\'')) return true;
  return std::string_view(command).substr(0, space).find_first_of("/\\") == std::string_view::npos;
}

void put_in_front(Draft& draft, std::vector<std::string> words) {
  if (words.empty()) return;
  draft.command = words.front();
  draft.args.insert(draft.args.begin(), words.begin() + 1, words.end());
}

void split_whole_line(Draft& draft) {
  if (!is_command_line(draft.command)) return;
  draft.remark("/config/command",
               "`command` was a whole command line; it is split into command and arguments");
  put_in_front(draft, split_command_line(draft.command));
}

// Removes `cmd /c`, which Windows needs to run npx.
void remove_windows_shell(Draft& draft) {
  std::string name = program_name(draft.command);
  std::ranges::transform(name, name.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c | 32) : c; });
  if (name != "cmd") return;
  std::size_t word = 0;
  while (word < draft.args.size() && draft.args[word].size() == 2 && draft.args[word].front() == '/') ++word;
  if (word == 0 || word == draft.args.size()) return;
  draft.command = draft.args[word];
  draft.args.erase(draft.args.begin(), draft.args.begin() + static_cast<std::ptrdiff_t>(word) + 1);
  draft.remark("/config/command", "`cmd /c` is removed, which only Windows has");
  if (is_command_line(draft.command)) put_in_front(draft, split_command_line(draft.command));
}

void remove_windows_suffix(Draft& draft) {
  if (draft.command.find_first_of("/\\") != std::string::npos || !draft.command.ends_with(".cmd")) return;
  draft.command.resize(draft.command.size() - 4);
}

void expand_home(std::string& path, std::string_view pointer, const std::string& home, Draft& draft) {
  for (const std::string_view prefix : {"~", "${userHome}", "${env:HOME}", "${HOME}", "$HOME"}) {
    const bool is_prefix = path == prefix || path.starts_with(std::string(prefix) + "/");
    if (!is_prefix) continue;
    if (home.empty()) {
      draft.remark(std::string(pointer),
                   "`" + std::string(prefix) + "` is not expanded in `command` and `cwd`");
    } else {
      path.replace(0, prefix.size(), home);
    }
    return;
  }
}

// The words of a command line that are read one by one.
struct Words {
  std::vector<std::string> all;
  std::size_t at = 0;

  bool done() const { return at >= all.size(); }
  std::string next() { return done() ? std::string() : all[at++]; }
  bool skip(std::string_view word) {
    if (done() || all[at] != word) return false;
    ++at;
    return true;
  }
};

// Skips a program that runs packages, such as `npx -y`. Returns the name of the package, without its version.
std::string package_of(Words& words) {
  std::string name = program_name(words.next());
  const bool has_verb = (name == "npm" && (words.skip("exec") || words.skip("x"))) ||
                        ((name == "pnpm" || name == "yarn") && words.skip("dlx")) ||
                        (name == "bun" && words.skip("x")) || (name == "pipx" && words.skip("run")) ||
                        (name == "uv" && words.skip("tool") && words.skip("run"));
  constexpr std::array<std::string_view, 5> kRunners = {"npx", "bunx", "pnpx", "uvx", "pnpm"};
  if (has_verb || (contains(kRunners, name) && name != "pnpm")) {
    while (!words.done() && words.all[words.at].starts_with('-')) {
      const std::string option = words.next();
      if (option == "-p" || option == "--package" || option == "--from") words.next();
    }
    name = program_name(words.next());
  }
  const std::size_t version = name.find('@', 1);
  return name.substr(0, version);
}

// What the command line of a bridge says about the server behind it.
struct Bridge {
  std::string url;
  bool is_sse = false;
  Draft::Texts headers;
  std::vector<std::string> denied;
  std::vector<std::string> ignored;
};

void add_header(Bridge& bridge, std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const std::size_t value = line.find_first_not_of(' ', colon + 1);
  bridge.headers[std::string(line.substr(0, colon))] =
      value == std::string_view::npos ? std::string() : std::string(line.substr(value));
}

// An option of a bridge and how many words follow it.
struct BridgeOption {
  std::string_view name;
  std::size_t values;
};

constexpr std::array kBridgeOptions = {
    BridgeOption{"--host", 1},
    BridgeOption{"--auth-timeout", 1},
    BridgeOption{"--resource", 1},
    BridgeOption{"--logLevel", 1},
    BridgeOption{"--port", 1},
    BridgeOption{"--outputTransport", 1},
    BridgeOption{"--log-level", 1},
    BridgeOption{"--static-oauth-client-metadata", 1},
    BridgeOption{"--protocolVersion", 1},
    BridgeOption{"--static-oauth-client-info", 1},
};

// Reads one option of any of the bridges.
void read_bridge_option(Bridge& bridge, const std::string& option, Words& words) {
  if (option == "--header") return add_header(bridge, words.next());
  if (option == "--headers" || option == "-H") {
    const std::string name = words.next();
    bridge.headers[name] = words.next();
  } else if (option == "--oauth2Bearer") {
    bridge.headers["Authorization"] = "Bearer " + words.next();
  } else if (option == "--sse" || option == "--streamableHttp") {
    bridge.url = words.next();
    bridge.is_sse = option == "--sse";
  } else if (option == "--transport") {
    bridge.is_sse = words.next().starts_with("sse");
  } else if (option == "--ignore-tool") {
    bridge.denied.push_back(words.next());
  } else if (option != "--allow-http" && option != "--debug" && option != "--silent") {
    bridge.ignored.push_back(option);
    const auto* const known =
        std::ranges::find(kBridgeOptions, std::string_view(option), &BridgeOption::name);
    for (std::size_t i = 0; known != kBridgeOptions.end() && i < known->values; ++i) words.next();
  }
}

std::optional<Bridge> bridge_of(const Draft& draft) {
  Words words{draft.args};
  words.all.insert(words.all.begin(), draft.command);
  const std::string package = package_of(words);
  if (package != "mcp-remote" && package != "mcp-proxy" && package != "supergateway") return std::nullopt;
  Bridge bridge;
  while (!words.done()) {
    const std::string word = words.next();
    if (word == "--stdio") return std::nullopt;  // the other direction
    if (word.starts_with('-')) {
      read_bridge_option(bridge, word, words);
    } else if (bridge.url.empty() && package != "supergateway") {
      bridge.url = word;
    }
  }
  if (!is_url(bridge.url)) return std::nullopt;
  return bridge;
}

// Replaces ${NAME} by the variables that the entry sets for the bridge.
std::string with_own_variables(std::string text, const Draft::Texts& env) {
  for (const auto& [name, value] : env) {
    const std::string reference = "${" + name + "}";
    for (std::size_t at = text.find(reference); at != std::string::npos && text.size() < kMaxExpandedHeader;
         at = text.find(reference, at + value.size()))
      text.replace(at, reference.size(), value);
  }
  return text;
}

void replace_bridge(Draft& draft) {
  const std::optional<Bridge> bridge = bridge_of(draft);
  if (!bridge) return;
  draft.remark("/config/url",
               "`" + draft.command + "` was only a bridge to this address: the gateway connects directly");
  draft.of_bridge = true;
  draft.url = bridge->url;
  draft.url_is_sse = bridge->is_sse;
  draft.url_is_http = !bridge->is_sse;
  draft.type = Draft::Transport::unknown;
  for (const auto& [name, value] : bridge->headers)
    draft.headers[name] = with_own_variables(value, draft.env);
  if (!bridge->denied.empty()) draft.deny = bridge->denied;
  for (const std::string& option : bridge->ignored)
    draft.remark("", "the option `" + option + "` of the bridge is omitted");
  if (const auto token = draft.env.find("API_ACCESS_TOKEN"); token != draft.env.end())
    draft.headers.try_emplace("Authorization", "Bearer " + token->second);
  if (!draft.headers.contains("Authorization"))
    draft.remark(
        "", "the bridge may have signed in with OAuth; the gateway sends only the headers that are given");
  draft.command.clear();
  draft.args.clear();
  draft.env.clear();
  draft.cwd.clear();
}

}  // namespace

std::vector<std::string> split_command_line(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = '\0';
  for (const char c : line) {
    if (quote != '\0' && c == quote) {
      quote = '\0';
    } else if (quote == '\0' && (c == '"' || c == '\'')) {
      quote = c;
      in_word = true;
    } else if (quote == '\0' && is_space(c)) {
      if (in_word) words.push_back(std::exchange(word, {}));
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (in_word) words.push_back(word);
  return words;
}

std::string program_name(std::string_view command) {
  command.remove_prefix(command.find_last_of("/\\") + 1);
  for (const std::string_view suffix : {".exe", ".cmd", ".EXE", ".CMD"})
    if (command.ends_with(suffix)) command.remove_suffix(suffix.size());
  return std::string(command);
}

void clear_up_command(Draft& draft, const std::string& home) {
  if (draft.command.empty()) return;
  split_whole_line(draft);
  remove_windows_shell(draft);
  remove_windows_suffix(draft);
  expand_home(draft.command, "/config/command", home, draft);
  expand_home(draft.cwd, "/config/cwd", home, draft);
  if (draft.type == Draft::Transport::unknown || draft.type == Draft::Transport::stdio) replace_bridge(draft);
}

}  // namespace fairlead::clients
