#include <CLI/CLI.hpp>

#include "cli/common.hpp"
#include "cli/output.hpp"
#include "fairlead/json/writer.hpp"

namespace fairlead::cli {

void add_version(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand("version", "Print the version");
  auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "As a JSON object");
  command->callback([as_json, &status] {
    json::Writer version;
    version.begin_object()
        .key("name")
        .string("fairlead")
        .key("version")
        .string(FAIRLEAD_VERSION)
        .end_object();
    *as_json ? print_json(version.text()) : print_text_line("fairlead " FAIRLEAD_VERSION);
    status = kSuccess;
  });
}

}  // namespace fairlead::cli
