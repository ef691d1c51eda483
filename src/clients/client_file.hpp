// Changes the configuration file of a client on disk: atomically, with a backup beside it. Blocking. Private
// to the library.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "fairlead/base/result.hpp"

namespace fairlead::clients {

// The number of backups of one file that are kept (max_client_file_backups).
inline constexpr std::size_t kMaxClientFileBackups = 5;

struct ClientFileText {
  std::string path;  // of the file itself: symbolic links are resolved
  std::string text;
  bool exists = false;
};

// Reads the file. A file that does not exist has no text. Fails with `io` or `validation`; the message names
// the file.
Result<ClientFileText> read_client_file_text(const std::string& path);

struct ClientFileChange {
  std::string path;
  std::string before;
  std::string after;   // equals `before` if there was nothing to do
  std::string backup;  // path of the backup; empty if the file is new or unchanged
};

// Replaces the text of the file by `edit` of it. If the client writes the file meanwhile, edits the new text.
// With `dry_run` writes nothing. The directory must exist.
Result<ClientFileChange> change_client_file(const std::string& path,
                                            const std::function<Result<std::string>(std::string_view)>& edit,
                                            bool dry_run);

// Returns the path of the newest backup of the file; empty if there is none. `path` is that of the file
// itself.
std::string newest_backup(const std::string& path);

}  // namespace fairlead::clients
