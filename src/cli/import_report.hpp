// Prints what an import would do, or has done.
#pragma once

#include <string>
#include <vector>

#include "cli/import_source.hpp"
#include "clients/import_plan.hpp"
#include "fairlead/json/writer.hpp"

namespace fairlead::cli {

// A literal value that looks like a secret, and stays in the row.
struct KeptSecret {
  std::string server;
  std::string place;  // such as "env/TOKEN"
};

struct ImportOutcome {
  ImportOutcome() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  const ImportSource* source = nullptr;
  std::vector<clients::PlannedServer> servers;
  std::vector<std::string> failures;  // one for each server; empty: none
  std::vector<KeptSecret> kept_secrets;
};

// Prints a file, its servers with what is added or changed (`details`: also each value of new servers), and
// what is left to do.
void print_import(const ImportOutcome& outcome, bool dry_run, bool details);
void print_import_json(const std::vector<ImportOutcome>& outcomes, bool dry_run);

}  // namespace fairlead::cli
