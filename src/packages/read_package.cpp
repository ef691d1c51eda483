#include "packages/read_package.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/comma_list.hpp"
#include "base/read_file.hpp"
#include "fairlead/json/writer.hpp"
#include "packages/bundle.hpp"
#include "packages/server_document.hpp"

namespace fairlead::packages {

namespace {

constexpr std::string_view kZipMagic("PK\x03\x04", 4);

std::string environment_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

bool is_program(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

bool is_in_search_path(const std::string& program) {
  if (program.contains('/')) return is_program(program);
  std::string directories = environment_variable("PATH");
  std::ranges::replace(directories, ':', ',');
  return any_list_element(directories, [&](std::string_view directory) {
    return is_program(std::string(directory) + "/" + program);
  });
}

Error named(const Error& error, const std::string& path) {
  return Error(error.kind(), path + " " + error.message());
}

// ---- server.json -----------------------------------------------------------------------------------------

Choice choice_of(const Candidate& candidate, const PackageOptions& options) {
  Choice choice;
  choice.id = candidate.id;
  choice.summary = candidate.summary;
  choice.problem = candidate.server.skip_reason;
  const auto has_program = options.has_program ? options.has_program : is_in_search_path;
  if (choice.problem.empty() && !candidate.is_remote && !has_program(candidate.program))
    choice.problem = "the program `" + candidate.program + "` is not installed here";
  choice.runs_here = choice.problem.empty();
  return choice;
}

bool is_selected_by(const Candidate& candidate, const std::string& wanted) {
  return candidate.id == wanted || (wanted == "remote" && candidate.is_remote);
}

Result<std::size_t> select(const ServerDocument& document, const std::vector<Choice>& choices,
                           const std::string& wanted) {
  std::string ids;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const bool selected =
        wanted.empty() ? choices[i].runs_here : is_selected_by(document.candidates[i], wanted);
    if (selected) return i;
    ids.append(ids.empty() ? "" : ", ").append(choices[i].id);
  }
  if (!wanted.empty()) return Error(ErrorKind::validation, "has no package `" + wanted + "`; it has " + ids);
  // One that can be selected, although its program is missing, if there is one.
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (document.candidates[i].server.skip_reason.empty()) return i;
  }
  return 0;
}

Result<Package> package_of(std::string_view text, const PackageOptions& options) {
  CommandOptions command;
  command.join_named_arguments = options.join_named_arguments;
  Result<ServerDocument> document = read_server_document(text, command);
  if (!document) return document.error();
  Package package;
  for (const Candidate& candidate : document->candidates)
    package.choices.push_back(choice_of(candidate, options));
  const Result<std::size_t> selected = select(*document, package.choices, options.package);
  if (!selected) return selected.error();
  package.selected = *selected;
  package.file.format = "server.json";
  clients::ImportedServer& server = document->candidates[*selected].server;
  const std::string& problem = package.choices[*selected].problem;
  if (server.skip_reason.empty() && !problem.empty()) server.remarks.push_back({"/config/command", problem});
  package.file.servers.push_back(std::move(server));
  return package;
}

// ---- bundles ---------------------------------------------------------------------------------------------

json::Raw bundle_source(const Bundle& bundle) {
  json::Writer out;
  out.begin_object().key("format").string("mcpb").key("name").string(bundle.manifest().name);
  out.key("version").string(bundle.manifest().version).key("sha256").string(bundle.sha256());
  out.key("signature").string(to_string(bundle.signature().state));
  if (!bundle.signature().publisher.empty()) out.key("publisher").string(bundle.signature().publisher);
  out.end_object();
  return out.finish();
}

std::string signature_remark(const Signature& signature) {
  switch (signature.state) {
    case Signature::State::trusted: return "the bundle is signed by " + signature.publisher;
    case Signature::State::self_signed:
      return "the bundle is self-signed as " + signature.publisher + ", which anybody can do";
    case Signature::State::none: break;
  }
  return signature.problem.empty() ? "the bundle is not signed"
                                   : "the bundle counts as unsigned: " + signature.problem;
}

Result<Package> package_of_bundle(std::string bytes, const PackageOptions& options) {
  Result<std::shared_ptr<const Bundle>> bundle =
      Bundle::open(std::move(bytes), options.certificates_directory);
  if (!bundle) return bundle.error();
  Package package;
  package.bundle = std::move(*bundle);
  const std::string parent =
      options.bundles_directory.empty() ? default_bundles_directory() : options.bundles_directory;
  package.directory = parent + "/" + package.bundle->directory_name();
  const BundlePlaces places{package.directory, environment_variable("HOME")};
  Result<clients::ImportedServer> server =
      server_of(package.bundle->manifest(), places, bundle_source(*package.bundle));
  if (!server) return server.error();
  package.file.format = "mcpb";
  package.file.servers.push_back(std::move(*server));
  package.signature = package.bundle->signature();
  package.file.remarks.push_back({{}, signature_remark(*package.signature)});
  package.sha256 = package.bundle->sha256();
  package.tools = package.bundle->manifest().tools;
  return package;
}

}  // namespace

bool is_package(std::string_view bytes) {
  if (bytes.starts_with(kZipMagic)) return true;
  if (bytes.size() > kMaxServerDocumentBytes) return false;
  const Result<json::Raw> document = json::Raw::parse(bytes, 64);
  return document && json::View(*document).is(json::Type::object) &&
         is_server_document(json::View(*document));
}

Result<Package> read_package(const std::string& path, const PackageOptions& options) {
  Result<std::string> bytes = read_regular_file(path, {"max_bundle_bytes", ZipLimits().max_bundle_bytes});
  if (!bytes) return Error(bytes.error().kind(), path + ": " + bytes.error().message());
  Result<Package> package = bytes->starts_with(kZipMagic) ? package_of_bundle(std::move(*bytes), options)
                                                          : package_of(*bytes, options);
  if (!package) return named(package.error(), path);
  return package;
}

Result<Package> read_server_json(std::string_view text, const PackageOptions& options) {
  Result<Package> package = package_of(text, options);
  if (!package) return named(package.error(), "server.json");
  return package;
}

Result<void> install(const Package& package) {
  if (!package.bundle) return {};
  return package.bundle->unpack(package.directory);
}

std::string default_bundles_directory() {
  std::string base = environment_variable("XDG_DATA_HOME");
  if (base.empty()) base = environment_variable("HOME") + "/.local/share";
  return base + "/fairlead/bundles";
}

}  // namespace fairlead::packages
