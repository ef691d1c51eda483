#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/common.hpp"

namespace fairlead::cli {

void add_version(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand("version", "Print the version");
  auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "As a JSON object");
  command->callback([as_json, &status] {
    if (*as_json) {
      std::printf("{\"name\":\"fairlead\",\"version\":\"%s\"}\n", FAIRLEAD_VERSION);
    } else {
      std::printf("fairlead %s\n", FAIRLEAD_VERSION);
    }
    status = kSuccess;
  });
}

}  // namespace fairlead::cli
