#include "cli/import_source.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/read_file.hpp"
#include "base/suggestion.hpp"
#include "clients/read.hpp"

namespace fairlead::cli {

namespace {

std::optional<std::string> environment_variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

bool is_file(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISDIR(status.st_mode);
}

std::string absolute_path(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path absolute = std::filesystem::absolute(path, failed);
  std::string normal = failed ? path : absolute.lexically_normal().string();
  while (normal.size() > 1 && normal.ends_with('/')) normal.pop_back();
  return normal;
}

Error file_error(const std::string& path, const Error& reason) {
  return Error(ErrorKind::validation, path + ": " + reason.message());
}

Result<std::string> read_env_file(const std::string& path) {
  constexpr FileLimit kLimit{"max_env_file_bytes", 1u << 20};
  return read_regular_file(path, kLimit);
}

// Returns whether the file is one that packages::read_package() reads.
bool is_package_file(const std::string& path) {
  constexpr FileLimit kLimit{"max_client_file_bytes", clients::kMaxClientFileBytes};
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed)) return false;  // opening a FIFO would block
  std::array<char, 4> head{};
  std::ifstream(path, std::ios::binary).read(head.data(), head.size());
  if (packages::is_package(std::string_view(head.data(), head.size()))) return true;
  const Result<std::string> text = read_regular_file(path, kLimit);
  return text && packages::is_package(*text);
}

Result<ImportSource> read_package_file(const std::string& path, const ImportRequest& request) {
  packages::PackageOptions options;
  options.package = request.package;
  Result<packages::Package> package = packages::read_package(path, options);
  if (!package) return package.error();
  ImportSource source;
  source.path = path;
  source.file = package->file;
  source.package = std::move(*package);
  return source;
}

clients::ReadOptions read_options(const clients::Client* client, const ImportRequest& request) {
  clients::ReadOptions options;
  options.client = client;
  options.home = environment_variable("HOME").value_or("");
  options.project = request.project.empty() ? std::string() : absolute_path(request.project);
  options.own_urls = request.own_urls;
  options.read_env_file = &read_env_file;
  return options;
}

Result<std::string> read_client_text(const std::string& path) {
  constexpr FileLimit kLimit{"max_client_file_bytes", clients::kMaxClientFileBytes};
  Result<std::string> text = read_regular_file(path, kLimit);
  if (!text) return file_error(path, text.error());
  return text;
}

Result<ImportSource> read_client(const std::string& path, const clients::Client* client,
                                 const ImportRequest& request) {
  const Result<std::string> text = read_client_text(path);
  if (!text) return text.error();
  clients::ReadOptions options = read_options(client, request);
  options.path = path;
  if (options.project.empty())
    options.project =
        clients::project_of_file(absolute_path(path), clients::Places::of_environment(&environment_variable));
  Result<clients::ImportedFile> file = clients::read_client_file(*text, options);
  if (!file) return file_error(path, file.error());
  ImportSource source;
  source.path = path;
  source.file = std::move(*file);
  return source;
}

Error no_client_file(const clients::Client& client, const clients::Places& places) {
  std::string paths;
  for (const clients::FoundFile& file : clients::possible_files(client, places))
    paths += (paths.empty() ? "" : ", ") + file.path;
  return Error(ErrorKind::validation, std::string(client.title) + " has no file here" +
                                          (paths.empty() ? "" : "; looked for " + paths));
}

Error no_servers(const clients::Client& client, const std::vector<clients::ClientSource>& files) {
  std::string paths;
  for (const clients::ClientSource& file : files) paths += (paths.empty() ? "" : ", ") + file.path;
  return Error(ErrorKind::validation, std::string(client.title) + " has no servers in " + paths);
}

Result<std::vector<ImportSource>> read_files_of(const clients::Client& client, const ImportRequest& request) {
  clients::Places places = clients::Places::of_environment(&environment_variable);
  places.project = request.project;
  std::vector<clients::ClientSource> texts;
  for (const clients::FoundFile& file : clients::find_files(client, places)) {
    Result<std::string> text = read_client_text(file.path);
    if (!text) return text.error();
    texts.push_back({file.path, file.scope, std::move(*text)});
  }
  if (texts.empty()) return no_client_file(client, places);
  clients::ReadOptions options = read_options(&client, request);
  options.may_be_empty = true;
  Result<std::vector<clients::ImportedFile>> files = clients::read_client_files(texts, options);
  if (!files) return files.error();
  if (std::ranges::all_of(*files, [](const auto& file) { return file.servers.empty(); }))
    return no_servers(client, texts);
  std::vector<ImportSource> sources(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    sources[i].path = texts[i].path;
    sources[i].file = std::move((*files)[i]);
  }
  return sources;
}

Error unknown_source(const std::string& source) {
  std::vector<std::string> ids;
  for (const clients::Client& client : clients::clients()) ids.emplace_back(client.id);
  const std::string closest(closest_word(source, ids));
  const std::string hint = closest.empty() ? "" : " (did you mean `" + closest + "`?)";
  return Error(ErrorKind::validation, "`" + source + "` is neither a file nor a client" + hint +
                                          "; the clients are " + clients::client_ids());
}

}  // namespace

Result<std::vector<ImportSource>> read_sources(const ImportRequest& request) {
  const clients::Client* const format = clients::find_client(request.format);
  if (!request.format.empty() && !format) return unknown_source(request.format);
  if (!is_file(request.source)) {
    const clients::Client* const client = clients::find_client(request.source);
    if (!client) return unknown_source(request.source);
    return read_files_of(*client, request);
  }
  const bool package = !format && is_package_file(request.source);
  Result<ImportSource> source =
      package ? read_package_file(request.source, request) : read_client(request.source, format, request);
  if (!source) return source.error();
  std::vector<ImportSource> sources;
  sources.push_back(std::move(*source));
  return sources;
}

}  // namespace fairlead::cli
