// Completion of the command line: what can follow the words that were typed.
#pragma once

#include <string>
#include <vector>

#include "cli/admin_client.hpp"

namespace fairlead::cli {

struct Candidate {
  std::string word;
  std::string help;
};

// The words that determine which names can follow.
struct CompletionContext {
  std::vector<std::string> words;  // the commands, such as "servers", "show"
  GatewayChoice choice;            // the options that select a gateway
};

// Returns the names that the argument or option can have, such as those of servers, from a running gateway or
// the file of the contexts. Returns none after one second, and for any error.
std::vector<Candidate> names_for(const CompletionContext& context, const std::string& argument);

// Prints the candidates for the last word, one per line with a tab and a description.
int complete_words(const CLI::App& program, std::vector<std::string> words);

}  // namespace fairlead::cli
