// What must hold for every file of a client, whatever it contains.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "clients/read.hpp"
#include "clients/write.hpp"
#include "codec_checks.hpp"
#include "fairlead/json/view.hpp"
#include "registry/json.hpp"

namespace fairlead::clients::checks {

using rpc::checks::require;

// The secrets that were found are really where they are said to be.
inline void check_secrets(const ImportedServer& server) {
  for (const LiteralSecret& secret : server.literal_secrets) {
    require(!secret.name.empty() && !secret.value.empty() && secret.pointer.starts_with('/'));
    require(secret.replacement.find("${secret:" + secret.name + "}") != std::string::npos);
  }
}

// Rows that were imported can be exported to every client, and read back. Short ones: keys of YAML have up to
// 1,024 characters.
inline void check_export(const std::vector<json::Raw>& rows) {
  for (const Client& client : clients()) {
    const Result<ExportedFile> file = write_client_file(client, rows);
    require(file.has_value());
    ReadOptions options;
    options.client = &client;
    const Result<ImportedFile> read = read_client_file(file->text, options);
    require(read.has_value());
  }
}

inline void check_client_file(std::string_view text, const ReadOptions& options) {
  const Result<ImportedFile> file = read_client_file(text, options);
  if (!file) {
    require(file.error().kind() == ErrorKind::validation);
    return require(!file.error().message().empty());
  }
  std::vector<json::Raw> rows;
  std::set<std::string> names;
  for (const ImportedServer& server : file->servers) {
    if (!server.skip_reason.empty()) continue;
    const Result<registry::Server> row = registry::new_server(json::View(server.row));
    require(row.has_value());
    require(names.insert(row->name).second);
    check_secrets(server);
    if (rows.size() < 3 && server.row.text().size() < 1000) rows.push_back(server.row);
  }
  if (!rows.empty()) check_export(rows);
}

// The first byte selects the client; the file is read for it and for a client that is not known.
inline void check_for_clients(const std::uint8_t* data, std::size_t size, FileFormat format,
                              std::string path) {
  if (size == 0) return;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  ReadOptions options;
  options.path = std::move(path);
  options.home = "/users/a";
  options.own_urls = {"http://127.0.0.1:8808/mcp"};
  check_client_file(text, options);
  std::vector<const Client*> fitting;
  for (const Client& client : clients())
    if (client.format == format) fitting.push_back(&client);
  options.client = fitting[data[0] % fitting.size()];
  check_client_file(text, options);
}

}  // namespace fairlead::clients::checks
