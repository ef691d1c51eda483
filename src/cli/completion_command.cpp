// fairlead completion: scripts for shells. They call `fairlead __complete WORD…`, which reads the same
// definitions as the parser, so that the scripts never differ from the program.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <optional>

#include "cli/common.hpp"
#include "cli/completion.hpp"
#include "cli/output.hpp"

namespace fairlead::cli {

namespace {

// clang-format off: it would change the scripts
constexpr std::string_view kBashScript =
    R"script(# Completion of fairlead for bash: eval "$(fairlead completion bash)"
_fairlead() {
  # Bash splits words at = and : (COMP_WORDBREAKS). Pieces without a space between them are one word.
  local words=() rest=${COMP_LINE:0:COMP_POINT} piece spaces i
  for ((i = 0; i <= COMP_CWORD; i++)); do
    spaces=${rest%%[![:space:]]*}
    rest=${rest#"$spaces"}
    piece=${COMP_WORDS[i]}
    ((i == COMP_CWORD)) && piece=$rest
    rest=${rest#"$piece"}
    if [[ $spaces || $i == 0 ]]; then words+=("$piece"); else words[${#words[@]}-1]+=$piece; fi
  done
  # Bash replaces the last piece only, so the candidates are inserted without what is before it.
  local last=${words[${#words[@]}-1]} before=
  case $piece in
    = | :) before=$last ;;
    *) before=${last%"$piece"} ;;
  esac
  local clean=() word
  for word in "${words[@]}"; do
    if [[ $word == *[\'\"\\]* ]]; then word=${word//[\'\"\\]/}; fi
    clean+=("$word")
  done
  local line candidate
  COMPREPLY=()
  while IFS= read -r line; do
    candidate=${line%%$'\t'*}
    COMPREPLY+=("$(printf '%q' "${candidate#"$before"}")")
  done < <("${clean[@]:0:1}" __complete "${clean[@]:1}" 2>/dev/null)
}
complete -o default -F _fairlead fairlead
)script";

constexpr std::string_view kZshScript = R"script(#compdef fairlead
# Completion of fairlead for zsh: source <(fairlead completion zsh)
_fairlead() {
  local -a candidates
  local line
  while IFS= read -r line; do
    candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done < <("${words[1]}" __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)
  if (( ${#candidates} )); then
    _describe fairlead candidates
  else
    _files
  fi
}
if [ "$funcstack[1]" = "_fairlead" ]; then
  _fairlead "$@"
else
  compdef _fairlead fairlead
fi
)script";

constexpr std::string_view kFishScript =
    R"script(# Completion of fairlead for fish: fairlead completion fish | source
function __fairlead_complete
  set -l words (commandline -opc) (commandline -ct)
  set -l candidates ($words[1] __complete $words[2..-1] 2>/dev/null)
  if test (count $candidates) -gt 0
    printf '%s\n' $candidates
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c fairlead -f -a '(__fairlead_complete)'
)script";
// clang-format on

// Where the word to complete is in the command line.
struct Position {
  const CLI::App* command = nullptr;
  const CLI::Option* option = nullptr;  // the word is the value of this option
  std::size_t arguments = 0;            // positional arguments before the word
  bool after_dashes = false;            // after --
  CompletionContext context;
};

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

const CLI::App* nested_command(const CLI::App& command, const std::string& word) {
  for (const CLI::App* nested : command.get_subcommands([](const CLI::App*) { return true; })) {
    if (nested->get_name() == word) return nested;
  }
  return nullptr;
}

// The words are as they were typed: the shell has not replaced ~ yet.
std::string with_home(const std::string& path) {
  const char* const home = std::getenv("HOME");
  return home && path.starts_with("~/") ? home + path.substr(1) : path;
}

void note_choice(CompletionContext& context, const CLI::Option& option, const std::string& value) {
  const std::string name = option.get_name();
  if (name == "--gateway") context.choice.url = value;
  if (name == "--context") context.choice.context = value;
  if (name == "--db") context.choice.database = value;
  if (name == "--token-file") context.choice.token_file = with_home(value);
  if (name == "--ca-file") context.choice.ca_file = with_home(value);
}

void pass_option(Position& at, const std::string& word) {
  const std::size_t equals = word.find('=');
  const CLI::Option* const option = at.command->get_option_no_throw(word.substr(0, equals));
  if (!option || !takes_value(*option)) return;
  if (equals == std::string::npos) {
    at.option = option;
  } else {
    note_choice(at.context, *option, word.substr(equals + 1));
  }
}

// Moves on by a complete word.
void pass_word(Position& at, const std::string& word) {
  if (at.option) return note_choice(at.context, *std::exchange(at.option, nullptr), word);
  if (!at.after_dashes && word == "--") {
    at.after_dashes = true;
  } else if (!at.after_dashes && word.starts_with('-') && word.size() > 1) {
    pass_option(at, word);
  } else if (const CLI::App* const nested = at.arguments == 0 ? nested_command(*at.command, word) : nullptr) {
    at.command = nested;
    at.context.words.push_back(word);
  } else {
    ++at.arguments;
  }
}

// Returns the argument at this position; the last one may be repeated.
const CLI::Option* positional_at(const CLI::App& command, std::size_t index) {
  const CLI::Option* last = nullptr;
  for (const CLI::Option* const option : command.get_options()) {
    if (!option->get_positional()) continue;
    last = option;
    if (index-- == 0) return option;
  }
  return last && last->get_items_expected_max() > 1 ? last : nullptr;
}

// Returns the words of a validator such as {direct,discover}, which is part of the name of the type.
std::vector<Candidate> choices_of(const CLI::Option& option) {
  std::vector<Candidate> choices;
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{');
  const std::size_t close = type.find('}', open == std::string::npos ? 0 : open);
  if (open == std::string::npos || close == std::string::npos) return choices;
  std::size_t begin = open + 1;
  while (begin <= close) {
    const std::size_t end = std::min(type.find(',', begin), close);
    choices.push_back({type.substr(begin, end - begin), ""});
    begin = end + 1;
  }
  return choices;
}

std::vector<Candidate> values_of(const Position& at, const CLI::Option& option) {
  std::vector<Candidate> values = choices_of(option);
  if (!values.empty()) return values;
  return names_for(at.context, option.get_positional() ? option.get_name(true) : option.get_name());
}

std::vector<Candidate> options_to_complete(const CLI::App& command) {
  std::vector<Candidate> found;
  for (const CLI::Option* const option : command.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames())
      found.push_back({"--" + name, option->get_description()});
  }
  return found;
}

std::vector<Candidate> commands_to_complete(const CLI::App& command) {
  std::vector<Candidate> found;
  for (const CLI::App* nested : command.get_subcommands([](const CLI::App*) { return true; })) {
    if (!nested->get_group().empty()) found.push_back({nested->get_name(), nested->get_description()});
  }
  return found;
}

// Returns the values for a word such as --name=val, with the part up to the equals sign.
std::vector<Candidate> assignments_to_complete(const Position& at, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  const CLI::Option* const option = at.command->get_option_no_throw(name);
  if (!option || !takes_value(*option)) return {};
  std::vector<Candidate> found = values_of(at, *option);
  for (Candidate& candidate : found) candidate.word.insert(0, name + "=");
  return found;
}

std::vector<Candidate> candidates_at(const Position& at, const std::string& word) {
  if (at.option) return values_of(at, *at.option);
  if (word.starts_with("--") && word.find('=') != std::string::npos && !at.after_dashes)
    return assignments_to_complete(at, word);
  if (word.starts_with('-') && !at.after_dashes) return options_to_complete(*at.command);
  std::vector<Candidate> found;
  if (at.arguments == 0 && !at.after_dashes) found = commands_to_complete(*at.command);
  const CLI::Option* const argument = positional_at(*at.command, at.arguments);
  if (!found.empty() || !argument) return found;
  return values_of(at, *argument);
}

bool is_plain(const std::string& text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; });
}

}  // namespace

int complete_words(const CLI::App& program, std::vector<std::string> words) {
  Position at;
  at.command = &program;
  const std::string last = words.empty() ? std::string() : words.back();
  if (!words.empty()) words.pop_back();
  for (const std::string& word : words) pass_word(at, word);
  std::string text;
  for (const Candidate& candidate : candidates_at(at, last)) {
    if (!candidate.word.starts_with(last) || !is_plain(candidate.word)) continue;
    text += candidate.word + "\t" + (is_plain(candidate.help) ? candidate.help : "") + "\n";
  }
  print_text(text);
  return finish_output(kSuccess);
}

void add_completion(CLI::App& program, int& status) {
  CLI::App* const command = program.add_subcommand("completion", "Print the completion script of a shell");
  auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "The shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer(
      "bash: eval \"$(fairlead completion bash)\"      in ~/.bashrc\n"
      "zsh:  source <(fairlead completion zsh)        in ~/.zshrc, after compinit\n"
      "fish: fairlead completion fish | source        in ~/.config/fish/config.fish\n"
      "The packages install these scripts.");
  command->callback([shell, &status] {
    print_text(*shell == "bash" ? kBashScript : *shell == "zsh" ? kZshScript : kFishScript);
    status = kSuccess;
  });
}

}  // namespace fairlead::cli
