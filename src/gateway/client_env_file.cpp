#include "gateway/client_env_file.hpp"

#include <cstdlib>
#include <filesystem>

#include "base/env_file.hpp"
#include "base/read_file.hpp"

namespace fairlead::gateway {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxEnvFileBytes = 256u << 10;

std::string home_directory() {
  const char* const home = std::getenv("HOME");
  return home ? home : "";
}

// Returns the directory of the workspace to which a configuration file belongs.
fs::path workspace_of(const fs::path& directory) {
  const std::string name = directory.filename();
  return name == ".vscode" || name == ".cursor" ? directory.parent_path() : directory;
}

void replace_prefix(std::string& text, std::string_view prefix, const std::string& replacement) {
  if (text.starts_with(prefix)) text.replace(0, prefix.size(), replacement);
}

}  // namespace

Result<std::map<std::string, std::string>> read_client_env_file(const std::string& name,
                                                                const std::string& config_path) {
  std::error_code ignored;
  const fs::path directory = fs::absolute(config_path, ignored).lexically_normal().parent_path();
  std::string path = name;
  replace_prefix(path, "~/", home_directory() + "/");
  replace_prefix(path, "${userHome}", home_directory());
  replace_prefix(path, "${workspaceFolder}", workspace_of(directory).string());
  if (path.find("${") != std::string::npos)
    return Error(ErrorKind::validation,
                 "has a variable other than ${userHome} and ${workspaceFolder} at its beginning");
  const std::string absolute = (directory / path).string();
  const Result<std::string> text =
      read_regular_file(absolute, FileLimit{"max_env_file_bytes", kMaxEnvFileBytes});
  if (!text)
    return Error(ErrorKind::validation, "cannot be read: " + absolute + ": " + text.error().message());
  if (text->size() > kMaxEnvFileBytes)
    return Error(ErrorKind::validation, "cannot be read: " + absolute +
                                            " has more than max_env_file_bytes (" +
                                            std::to_string(kMaxEnvFileBytes) + ")");
  return parse_env_file(*text);
}

}  // namespace fairlead::gateway
