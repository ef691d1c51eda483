// The fairlead program: registers the commands and parses the command line.
#include <malloc.h>

#include <CLI/CLI.hpp>

#include "cli/common.hpp"
#include "cli/completion.hpp"

int main(int argc, char** argv) {
  // Disables the fastbins of malloc. They collect the small blocks that many turns of the event loop free,
  // and a later free() merges all of these blocks at once. After the lists of large servers are removed, that
  // takes up to 170 ms.
  static_cast<void>(::mallopt(M_MXFAST, 0));
  CLI::App program("A JSON-RPC 2.0 and Model Context Protocol runtime.", "fairlead");
  program.require_subcommand(1);
  program.failure_message(fairlead::cli::usage_message);
  program.set_version_flag("-V,--version", "fairlead " FAIRLEAD_VERSION);
  program.footer(
      "Addresses: stdio:CMD ARG…, stdio: (own streams), tcp:HOST:PORT, unix:/PATH,\n"
      "http://…, https://…, ws://…, wss://…\n"
      "Exit status: 0 success, 1 the server responded with an error, 2 usage error, 3 cannot connect, spawn "
      "or write,\n"
      "4 timed out, 5 protocol violation.\n"
      "`fairlead help COMMAND` describes a command.");
  int status = fairlead::cli::kSuccess;
  fairlead::cli::add_serve(program, status);
  fairlead::cli::add_status(program, status);
  fairlead::cli::add_servers(program, status);
  fairlead::cli::add_endpoints(program, status);
  fairlead::cli::add_accounts(program, status);
  fairlead::cli::add_tokens(program, status);
  fairlead::cli::add_config(program, status);
  fairlead::cli::add_drift(program, status);
  fairlead::cli::add_contexts(program, status);
  fairlead::cli::add_rpc(program, status);
  fairlead::cli::add_call(program, status);
  fairlead::cli::add_inspect(program, status);
  fairlead::cli::add_tools(program, status);
  fairlead::cli::add_resources(program, status);
  fairlead::cli::add_prompts(program, status);
  fairlead::cli::add_skills(program, status);
  fairlead::cli::add_connect(program, status);
  fairlead::cli::add_secrets(program, status);
  fairlead::cli::add_terminate(program, status);
  fairlead::cli::add_demo(program, status);
  fairlead::cli::add_version(program, status);
  fairlead::cli::add_completion(program, status);
  fairlead::cli::add_man(program, status);
  fairlead::cli::add_help(program, status);
  if (argc > 1 && std::string_view(argv[1]) == "__complete")
    return fairlead::cli::complete_words(program, std::vector<std::string>(argv + 2, argv + argc));
  return fairlead::cli::run_program(program, argc, argv, status);
}
