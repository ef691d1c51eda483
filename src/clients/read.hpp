// Reads the configuration file of an MCP client into servers for the registry. Private to the library.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "clients/client.hpp"
#include "clients/imported_server.hpp"
#include "fairlead/base/result.hpp"

namespace fairlead::clients {

struct ReadOptions {
  ReadOptions() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  const Client* client = nullptr;  // nullptr: recognised by the path and the content
  std::string path;                // of the file; only to recognise the client
  // `~` and ${userHome} in `command`, `cwd` and `envFile` are replaced by it, unless empty.
  std::string home;
  std::string project;  // the directory of the project; ${workspaceFolder} is replaced by it, unless empty
  // URLs of this gateway: an entry with a URL of the same host and port that leads to one of the gateway's
  // paths is our own.
  std::vector<std::string> own_urls;
  bool may_be_empty = false;  // a file without servers is no error: a remark says so
  // Returns the text of an `envFile`. If not set, the file is not read, which a remark says.
  std::function<Result<std::string>(const std::string& path)> read_env_file;
};

// The limits of a file; a longer or deeper one, or one with more servers, fails with a message that names the
// limit.
inline constexpr std::size_t kMaxClientFileBytes = 32u << 20;  // max_client_file_bytes
inline constexpr std::size_t kMaxClientFileDepth = 128;        // max_client_file_depth
inline constexpr std::size_t kMaxImportedServers = 2'000;      // max_imported_servers

// Reads every server of a file, in all scopes. The row of each server without a `skip_reason` is valid for
// the registry, and has a name that no other row of the file has. A server with a `skip_reason` may have no
// row. References are translated to those of the gateway, and never expanded. Fails with `validation` if the
// text is not in the format of the client or has no servers; the message has no path. The text may be
// hostile.
Result<ImportedFile> read_client_file(std::string_view text, const ReadOptions& options = ReadOptions());

// One of the files of a client.
struct ClientSource {
  std::string path;
  FileScope scope = FileScope::user;
  std::string text;
};
// Reads several files of one client in the same way, except that the names of rows and secrets are different
// in all files together. Returns one result for each file. Messages of errors begin with the path.
Result<std::vector<ImportedFile>> read_client_files(const std::vector<ClientSource>& files,
                                                    const ReadOptions& options);

}  // namespace fairlead::clients
