// Parsing the command line: the messages for an invalid one, and `fairlead help`.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <sstream>

#include "base/printable.hpp"
#include "base/suggestion.hpp"
#include "cli/address_hint.hpp"
#include "cli/common.hpp"
#include "cli/output.hpp"

namespace fairlead::cli {

namespace {

// Suggests the closest known word, or else the only one that begins with `word`.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  std::string_view suggestion = closest_word(word, known);
  const auto begins = [&](const std::string& name) { return word.size() > 1 && name.starts_with(word); };
  if (suggestion.empty() && std::ranges::count_if(known, begins) == 1)
    suggestion = *std::ranges::find_if(known, begins);
  return suggestion.empty() ? std::string() : " (did you mean `" + std::string(suggestion) + "`?)";
}

std::vector<std::string> commands_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* nested : command.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(nested->get_name());
  return names;
}

std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// Returns the command that was chosen, such as `list` of `fairlead servers list`; the program if there is
// none.
const CLI::App& chosen_command(const CLI::App& program) {
  const CLI::App* command = &program;
  for (auto nested = command->get_subcommands(); !nested.empty(); nested = command->get_subcommands())
    command = nested.front();
  return *command;
}

// Returns the words that run the command, such as "fairlead servers list".
std::string words_of(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return (parent ? words_of(*parent) + " " : "") + command.get_name();
}

// Returns the first unrecognized option, or else the first surplus argument; empty if there is none. A word
// in the place of a command comes first, because the options after it belong to that command.
std::string unexpected_argument(const CLI::App& program, bool is_group) {
  const std::vector<std::string> extras = program.remaining(true);
  if (is_group && !extras.empty()) return extras.front();
  const auto option =
      std::ranges::find_if(extras, [](const std::string& word) { return word.starts_with('-'); });
  if (option != extras.end()) return *option;
  return extras.empty() ? std::string() : extras.front();
}

std::string quoted_word(const std::string& word) {
  return "`" + printable_line(shortened(word, 200)) + "`";
}

std::string unknown_command_problem(const CLI::App& command, const std::string& word) {
  const std::string of = command.get_parent() ? " of `" + words_of(command) + "`" : "";
  return "unknown command " + quoted_word(word) + of + did_you_mean(word, commands_of(command));
}

// An option that is unknown may be one of the program that a server runs.
std::string separator_hint(const CLI::App& command) {
  const CLI::Option* const program = command.get_option_no_throw("COMMAND");
  if (!program || program->results().empty()) return {};
  return ". Write `--` before the program and its arguments: `" + words_of(command) + " NAME -- " +
         printable_line(program->results().front()) + " …`";
}

std::string usage_problem(const CLI::App& program, const CLI::App& command, const CLI::Error& problem) {
  const bool is_group = !commands_of(command).empty();
  const std::string word = unexpected_argument(program, is_group);
  if (word.starts_with('-'))
    return "unknown option " + quoted_word(word) + did_you_mean(word, options_of(command)) +
           separator_hint(command);
  if (is_group && word.empty())
    return command.get_parent() ? "a command of `" + words_of(command) + "` is missing"
                                : std::string("a command is missing");
  if (is_group) return unknown_command_problem(command, word);
  return word.empty() ? printable_text(problem.what()) : "unexpected argument " + quoted_word(word);
}

std::string message_with_help(const std::string& problem, const CLI::App& command) {
  return "fairlead: " + problem + "\nSee `" + words_of(command) + " --help`.\n";
}

// Returns the arguments from the value of TARGET to the next option of the command, as the user typed them;
// empty if the command has no TARGET or none was given.
std::vector<std::string> words_from_target(const CLI::App& command, const std::vector<std::string>& args) {
  const CLI::Option* target = command.get_option_no_throw("TARGET");
  if (!target || target->results().empty()) return {};
  const std::vector<std::string> own = options_of(command);
  const auto begin = std::ranges::find(args, target->results().front());
  const auto end = std::find_if(begin, args.end(), [&](const std::string& word) {
    return std::ranges::count(own, word.substr(0, word.find('='))) > 0;
  });
  return std::vector<std::string>(begin, end);
}

struct HelpCommand {
  std::vector<std::string> words;
};

int print_help(const CLI::App& program, const HelpCommand& help) {
  const CLI::App* command = &program;
  std::string before;
  for (const std::string& word : help.words) {
    const auto found =
        command->get_subcommands([&](const CLI::App* nested) { return nested->check_name(word); });
    if (found.empty()) {
      std::fputs(message_with_help(unknown_command_problem(*command, word), *command).c_str(), stderr);
      return kUsageError;
    }
    before += (before.empty() ? "" : " ") + command->get_name();
    command = found.front();
  }
  print_text(command == &program ? program.get_formatter()->make_help(&program, program.get_name(),
                                                                      CLI::AppFormatMode::Normal)
                                 : command->help(before));
  return kSuccess;
}

}  // namespace

std::string usage_message(const CLI::App* program, const CLI::Error& problem) {
  const CLI::App& command = chosen_command(*program);
  return message_with_help(usage_problem(*program, command, problem), command);
}

int run_program(CLI::App& program, int argc, char** argv, const int& status) {
  open_closed_standard_streams();
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    std::ostringstream out;
    std::ostringstream err;
    const bool failed = program.exit(problem, out, err) != 0;
    print_text(out.str());
    const std::vector<std::string> words =
        words_from_target(chosen_command(program), std::vector<std::string>(argv, argv + argc));
    const std::string hint = failed ? address_hint(words) : std::string();
    std::fputs((err.str() + (hint.empty() ? "" : hint + "\n")).c_str(), stderr);
    return finish_output(failed ? kUsageError : kSuccess);
  }
  return finish_output(status);
}

void add_help(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand("help", "Describe the program or a command");
  auto help = std::make_shared<HelpCommand>();
  command->add_option("COMMAND", help->words, "The command, such as `serve`");
  command->callback([help, &program, &status] { status = print_help(program, *help); });
}

}  // namespace fairlead::cli
