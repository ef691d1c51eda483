#include "cli/import_report.hpp"

#include <map>

#include "cli/output.hpp"
#include "process/child_error_context.hpp"

namespace fairlead::cli {

namespace {

using clients::ImportAction;
using clients::PlannedServer;

std::string_view action_name(ImportAction action) {
  switch (action) {
    case ImportAction::add: return "add";
    case ImportAction::update: return "update";
    case ImportAction::unchanged: return "unchanged";
    case ImportAction::differs: return "differs";
    case ImportAction::skip: return "skip";
  }
  return "";
}

// The beginning of the line of a server, as in a diff.
char sign_of(ImportAction action) {
  switch (action) {
    case ImportAction::add: return '+';
    case ImportAction::update:
    case ImportAction::differs: return '~';
    case ImportAction::unchanged: return '=';
    case ImportAction::skip: break;
  }
  return '-';
}

std::string explanation(const PlannedServer& server, const std::string& failure) {
  if (!failure.empty()) return "failed: " + failure;
  switch (server.action) {
    case ImportAction::add: return "new";
    case ImportAction::update:
      return server.changes.empty() ? "exists and is equal; its secrets are stored again" : "changed";
    case ImportAction::differs: return "exists and differs; --update changes it";
    case ImportAction::unchanged:
      return server.secrets.empty() ? "exists and is equal"
                                    : "exists and is equal; its secrets may differ, --update stores them";
    case ImportAction::skip: return "skipped: " + server.reason;
  }
  return "";
}

void print_line(std::string_view indent, const std::string& text) {
  print_text(std::string(indent) + printable_line(text) + "\n");
}

std::string described(const clients::ImportInput& input) {
  return input.name + (input.description.empty() ? "" : " (" + input.description + ")");
}

void print_secrets(const PlannedServer& server) {
  for (const clients::PlannedSecret& secret : server.secrets)
    print_line("      ", "secret " + secret.name + ": stored encrypted");
  for (const clients::ImportInput& input : server.missing_inputs)
    print_line("      ", "needs a value for " + described(input) + ": --input " + input.name + "=VALUE");
  for (const clients::ImportInput& input : server.missing_secrets)
    print_line("      ", "needs the secret " + described(input) + ": fairlead secrets set " + input.name +
                             " --server " + server.name);
}

bool is_shown_in_full(const PlannedServer& server, bool details) {
  return server.action == ImportAction::update || server.action == ImportAction::differs ||
         (details && server.action == ImportAction::add);
}

void print_server(const PlannedServer& server, const std::string& failure, bool details) {
  print_line("  ", std::string(1, failure.empty() ? sign_of(server.action) : '!') + " " + server.name + ": " +
                       explanation(server, failure));
  if (is_shown_in_full(server, details))
    for (const std::string& change : server.changes) print_line("      ", change);
  for (const clients::Remark& remark : server.remarks) print_line("      ", "note: " + remark.message);
  const bool written = server.action == ImportAction::add || server.action == ImportAction::update;
  if (written && failure.empty()) print_secrets(server);
}

std::string_view done_name(ImportAction action) {
  switch (action) {
    case ImportAction::add: return "added";
    case ImportAction::update: return "updated";
    case ImportAction::skip: return "skipped";
    default: return action_name(action);
  }
}

std::string totals(const ImportOutcome& outcome, bool dry_run) {
  std::map<std::string_view, std::size_t> counts;
  for (std::size_t i = 0; i < outcome.servers.size(); ++i) {
    const ImportAction action = outcome.servers[i].action;
    const std::string_view word = dry_run ? action_name(action) : done_name(action);
    ++counts[outcome.failures[i].empty() ? word : "failed"];
  }
  std::string text;
  for (const auto& [word, count] : counts)
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + std::string(word);
  return (dry_run ? "Nothing was changed. Plan: " : "Done: ") + (text.empty() ? "no servers" : text) + ".";
}

void write_strings(json::Writer& out, std::string_view key, const std::vector<std::string>& texts) {
  out.key(key).begin_array();
  for (const std::string& text : texts) out.string(text);
  out.end_array();
}

std::vector<std::string> names_of(const std::vector<clients::ImportInput>& inputs) {
  std::vector<std::string> names;
  for (const clients::ImportInput& input : inputs) names.push_back(input.name);
  return names;
}

void write_server(json::Writer& out, const PlannedServer& server, const std::string& failure) {
  std::vector<std::string> secrets;
  for (const clients::PlannedSecret& secret : server.secrets) secrets.push_back(secret.name);
  std::vector<std::string> remarks;
  for (const clients::Remark& remark : server.remarks) remarks.push_back(remark.message);
  out.begin_object().key("name").string(server.name).key("action").string(action_name(server.action));
  if (!server.reason.empty()) out.key("reason").string(server.reason);
  if (!failure.empty()) out.key("error").string(failure);
  write_strings(out, "changes", server.changes);
  write_strings(out, "secrets", secrets);
  write_strings(out, "missingSecrets", names_of(server.missing_secrets));
  write_strings(out, "missingInputs", names_of(server.missing_inputs));
  write_strings(out, "remarks", remarks);
  out.end_object();
}

std::string signature_text(const packages::Signature& signature) {
  std::string text(packages::to_string(signature.state));
  if (!signature.publisher.empty())
    text += " by " + signature.publisher + ", issued by " + signature.issuer + ", valid until " +
            signature.valid_until + ", SHA-256 " + signature.fingerprint;
  return signature.problem.empty() ? text : text + " (" + signature.problem + ")";
}

// Prints what a package says about itself: the choices, and who has signed it.
void print_package(const packages::Package& package) {
  if (package.signature) print_line("  ", "signature: " + signature_text(*package.signature));
  if (!package.sha256.empty()) print_line("  ", "SHA-256: " + package.sha256);
  if (package.choices.size() < 2) return;
  for (std::size_t i = 0; i < package.choices.size(); ++i) {
    const packages::Choice& choice = package.choices[i];
    print_line("  ", std::string(i == package.selected ? "used: " : "or --package ") + choice.id + ": " +
                         choice.summary + (choice.problem.empty() ? "" : " (" + choice.problem + ")"));
  }
}

}  // namespace

void print_import(const ImportOutcome& outcome, bool dry_run, bool details) {
  print_line("", outcome.source->path + " (" + outcome.source->file.format + ")");
  if (outcome.source->package) print_package(*outcome.source->package);
  for (const clients::Remark& remark : outcome.source->file.remarks)
    print_line("  ", "note: " + remark.message);
  for (std::size_t i = 0; i < outcome.servers.size(); ++i)
    print_server(outcome.servers[i], outcome.failures[i], details);
  for (const KeptSecret& secret : outcome.kept_secrets)
    print_line("  ", "note: " + secret.server + ": " + secret.place +
                         " looks like a secret; this stores it encrypted: fairlead servers import " +
                         process::shell_quoted(outcome.source->path) + " " + secret.server +
                         " --update --move-secrets");
  print_line("", totals(outcome, dry_run));
}

void print_import_json(const std::vector<ImportOutcome>& outcomes, bool dry_run) {
  json::Writer out;
  out.begin_object().key("dryRun").boolean(dry_run).key("files").begin_array();
  for (const ImportOutcome& outcome : outcomes) {
    out.begin_object().key("path").string(outcome.source->path);
    out.key("format").string(outcome.source->file.format).key("servers").begin_array();
    for (std::size_t i = 0; i < outcome.servers.size(); ++i)
      write_server(out, outcome.servers[i], outcome.failures[i]);
    out.end_array().end_object();
  }
  out.end_array().end_object();
  print_json(out.text());
}

}  // namespace fairlead::cli
