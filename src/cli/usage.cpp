// The message for an invalid command line.
#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/suggestion.hpp"
#include "cli/common.hpp"

namespace fairlead::cli {

namespace {

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  const std::string_view closest = closest_word(word, known);
  return closest.empty() ? std::string() : " (did you mean `" + std::string(closest) + "`?)";
}

std::vector<std::string> commands_of(const CLI::App& program) {
  std::vector<std::string> names;
  for (const CLI::App* command : program.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// Returns the first unrecognized option, or else the first surplus argument; empty if there is none.
std::string unexpected_argument(const CLI::App& program) {
  const std::vector<std::string> extras = program.remaining(true);
  const auto option =
      std::ranges::find_if(extras, [](const std::string& word) { return word.starts_with('-'); });
  if (option != extras.end()) return *option;
  return extras.empty() ? std::string() : extras.front();
}

std::string usage_problem(const CLI::App& program, const CLI::App* command, const CLI::Error& problem) {
  const std::string word = unexpected_argument(program);
  if (word.starts_with('-'))
    return "unknown option `" + word + "`" + did_you_mean(word, options_of(command ? *command : program));
  if (!command && word.empty()) return "a command is missing";
  if (!command) return "unknown command `" + word + "`" + did_you_mean(word, commands_of(program));
  return word.empty() ? problem.what() : "unexpected argument `" + word + "`";
}

}  // namespace

std::string usage_message(const CLI::App* program, const CLI::Error& problem) {
  const std::vector<CLI::App*> chosen = program->get_subcommands();
  const CLI::App* const command = chosen.empty() ? nullptr : chosen.front();
  const std::string help = command ? "fairlead " + command->get_name() + " --help" : "fairlead --help";
  return "fairlead: " + usage_problem(*program, command, problem) + "\nSee `" + help + "`.\n";
}

}  // namespace fairlead::cli
