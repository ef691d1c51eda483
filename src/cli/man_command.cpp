// fairlead man: the manual pages, written from the definitions of the commands and options.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>

#include "base/printable.hpp"
#include "cli/common.hpp"
#include "cli/output.hpp"

namespace fairlead::cli {

namespace {

// Returns a character as roff wants it; those beyond ASCII have no spelling of their own in it.
std::string roff_character(const CodePoint& point, std::string_view spelling) {
  if (spelling == "\\") return "\\e";
  if (spelling == "-") return "\\-";
  if (point.length <= 1) return std::string(spelling);
  char name[16];
  std::snprintf(name, sizeof name, "\\[u%04X]", static_cast<unsigned>(point.value));
  return name;
}

// Returns text with the characters escaped that roff interprets.
std::string roff(std::string_view text) {
  std::string out;
  bool line_start = true;
  while (!text.empty()) {
    const CodePoint point = first_code_point(text);
    const std::string_view spelling = text.substr(0, std::max<std::size_t>(point.length, 1));
    if (line_start && (spelling == "." || spelling == "'")) out += "\\&";
    line_start = spelling == "\n";
    out += roff_character(point, spelling);
    text.remove_prefix(spelling.size());
  }
  return out;
}

std::string upper(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

std::vector<const CLI::App*> shown_commands(const CLI::App& command) {
  std::vector<const CLI::App*> shown;
  for (const CLI::App* nested : command.get_subcommands([](const CLI::App*) { return true; })) {
    if (!nested->get_group().empty()) shown.push_back(nested);
  }
  return shown;
}

std::string man_words(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  return (parent ? man_words(*parent) + " " : "") + command.get_name();
}

std::string page_name(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  return (parent ? page_name(*parent) + "-" : "") + command.get_name();
}

std::string argument_name(const CLI::Option& option) {
  std::string name = option.get_name(true);
  if (option.get_items_expected_max() > 1) name += "...";
  return option.get_required() ? name : "[" + name + "]";
}

std::string synopsis(const CLI::App& command) {
  std::string line = "\\fB" + roff(man_words(command)) + "\\fR [\\fIOPTION\\fR...]";
  for (const CLI::Option* const option : command.get_options()) {
    if (option->get_positional()) line += " \\fI" + roff(argument_name(*option)) + "\\fR";
  }
  if (!shown_commands(command).empty()) line += " \\fICOMMAND\\fR";
  return line;
}

std::string option_entry(const CLI::Option& option) {
  std::string names = option.get_positional() ? option.get_name(true) : option.get_name(false, true);
  std::string entry = ".TP\n\\fB" + roff(names) + "\\fR";
  if (!option.get_positional() && option.get_items_expected_max() > 0)
    entry += " \\fI" + roff(option.get_type_name()) + "\\fR";
  entry += "\n" + roff(option.get_description());
  if (!option.get_envname().empty()) entry += " (variable \\fB" + roff(option.get_envname()) + "\\fR)";
  return entry + "\n";
}

std::string options_text(const CLI::App& command) {
  std::string arguments;
  std::string options;
  for (const CLI::Option* const option : command.get_options()) {
    if (option->get_group().empty() && !option->get_positional()) continue;
    (option->get_positional() ? arguments : options) += option_entry(*option);
  }
  return arguments + options;
}

std::string footer_text(const CLI::App& command) {
  const std::string footer = command.get_footer();
  return footer.empty() ? footer : ".PP\n.nf\n" + roff(footer) + "\n.fi\n";
}

// The section of a nested command.
std::string command_section(const CLI::App& command) {
  return ".SS " + roff(man_words(command)) + "\n" + roff(command.get_description()) + ".\n.PP\n" +
         synopsis(command) + "\n" + options_text(command) + footer_text(command);
}

std::string exit_statuses() {
  return ".SH EXIT STATUS\n.TP\n.B 0\nsuccess\n.TP\n.B 1\nthe server or the gateway responded with an error, "
         "or "
         "a check failed\n.TP\n.B 2\nusage error\n.TP\n.B 3\ncannot connect, start a program, or write the "
         "output; the token was refused\n.TP\n.B 4\ntimed out\n.TP\n.B 5\nprotocol violation\n";
}

std::string page_head(const CLI::App& command) {
  return ".TH " + roff(upper(page_name(command))) +
         " 1 \"\" \"fairlead " FAIRLEAD_VERSION "\" \"Fairlead manual\"\n.ad l\n.nh\n.SH NAME\n" +
         roff(page_name(command)) + " \\- " + roff(command.get_description()) + "\n.SH SYNOPSIS\n" +
         synopsis(command) + "\n";
}

std::string command_list(const CLI::App& command) {
  std::string text;
  for (const CLI::App* const nested : shown_commands(command))
    text += ".TP\n\\fB" + roff(nested->get_name()) + "\\fR\n" + roff(nested->get_description()) + "\n";
  return text;
}

// The page of the program: the commands have pages of their own.
std::string program_page(const CLI::App& program) {
  std::string page =
      page_head(program) + ".SH COMMANDS\nEach command has a page of its own, such as fairlead\\-serve(1).\n";
  page += command_list(program) + ".SH OPTIONS\n" + options_text(program) + footer_text(program);
  page += exit_statuses() + ".SH SEE ALSO\n";
  std::string pages;
  for (const CLI::App* const nested : shown_commands(program))
    pages += (pages.empty() ? "" : ",\n") + (".BR " + roff(page_name(*nested)) + " (1)");
  return page + pages + "\n";
}

std::string command_page(const CLI::App& command) {
  std::string page = page_head(command);
  if (shown_commands(command).empty()) {
    page += ".SH OPTIONS\n" + options_text(command) + footer_text(command);
  } else {
    page += ".SH COMMANDS\n";
    for (const CLI::App* const nested : shown_commands(command)) page += command_section(*nested);
  }
  return page + exit_statuses() + ".SH SEE ALSO\n.BR fairlead (1)\n";
}

Result<void> write_page(const std::string& directory, const std::string& name, const std::string& text) {
  const std::string path = directory + "/" + name + ".1";
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text << std::flush;
  if (file) return {};
  return Error::from_errno(ErrorKind::io, "cannot write " + path, errno);
}

Result<void> write_pages(const CLI::App& program, const std::string& directory) {
  Result<void> written = write_page(directory, page_name(program), program_page(program));
  for (const CLI::App* const command : shown_commands(program)) {
    if (written) written = write_page(directory, page_name(*command), command_page(*command));
  }
  return written;
}

int print_manual(const CLI::App& program, const std::string& name) {
  if (name.empty()) {
    print_text(program_page(program));
    return kSuccess;
  }
  for (const CLI::App* const command : shown_commands(program)) {
    if (command->get_name() != name) continue;
    print_text(command_page(*command));
    return kSuccess;
  }
  return report(Error(ErrorKind::validation, "there is no command `" + name + "`"));
}

}  // namespace

void add_man(CLI::App& program, int& status) {
  CLI::App* const command = program.add_subcommand(
      "man", "Print a manual page, for `man -l -`, or write all of them into a directory");
  struct ManCommand {
    std::string name;
    std::string directory;
  };
  auto man = std::make_shared<ManCommand>();
  command->add_option("COMMAND", man->name, "The command; without it, the page of the program");
  command->add_option("--directory", man->directory, "Write the pages of all commands into this directory");
  command->callback([man, &program, &status] {
    if (man->directory.empty()) {
      status = print_manual(program, man->name);
      return;
    }
    const Result<void> written = write_pages(program, man->directory);
    status = written ? kSuccess : report(written.error());
  });
}

}  // namespace fairlead::cli
