// fairlead servers export: writes the servers of a gateway in the format of a client.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/glob.hpp"
#include "base/replace_file.hpp"
#include "base/suggestion.hpp"
#include "cli/admin_command.hpp"
#include "cli/output.hpp"
#include "cli/servers_command.hpp"
#include "clients/write.hpp"

namespace fairlead::cli {

namespace {

struct ExportCommand {
  AdminOptions options;
  std::string client;
  std::vector<std::string> names;
  std::string output;  // empty: stdout
  bool overwrite = false;

  void add_to(CLI::App& app) {
    app.add_option("CLIENT", client, "The client, such as claude-code, cursor or vscode")->required();
    app.add_option("NAME", names, "Export these servers only; `*` matches any text");
    app.add_option("-o,--output", output, "The file to write [stdout]");
    app.add_flag("--overwrite", overwrite, "Replace the file if it exists");
  }
  static Task<Result<int>> run(const ExportCommand& command, AdminClientPtr client);
};

Error unknown_client(const std::string& id) {
  std::vector<std::string> ids;
  for (const clients::Client& client : clients::clients()) ids.emplace_back(client.id);
  const std::string closest(closest_word(id, ids));
  const std::string hint = closest.empty() ? "" : " (did you mean `" + closest + "`?)";
  return Error(ErrorKind::validation,
               "there is no client `" + id + "`" + hint + "; the clients are " + clients::client_ids());
}

// Replaces a regular file atomically, which keeps its permissions. A symbolic link is followed. Returns false
// if there is no such file.
Result<bool> replace_existing(const std::string& path, const std::string& text) {
  std::error_code failed;
  const std::filesystem::path target = std::filesystem::canonical(path, failed);
  if (failed || !std::filesystem::is_regular_file(target, failed)) return false;
  const Result<void> replaced = replace_file(target.string(), text, 0600);
  if (!replaced) return replaced.error();
  return true;
}

// Writes a file. A new one is accessible to the user only, because its servers may have literal secrets.
Result<void> write_file(const std::string& path, const std::string& text, bool overwrite) {
  const Result<bool> replaced = overwrite ? replace_existing(path, text) : false;
  if (!replaced) return replaced.error();
  if (*replaced) return {};
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (overwrite ? 0 : O_EXCL);
  const int fd = ::open(path.c_str(), flags, 0600);
  if (fd < 0 && errno == EEXIST)
    return Error(ErrorKind::validation, path + " exists; --overwrite replaces it");
  if (fd < 0) return Error::from_errno(ErrorKind::io, "cannot write " + path, errno);
  std::FILE* const file = ::fdopen(fd, "w");
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) == 0 && written) return {};
  return Error::from_errno(ErrorKind::io, "cannot write " + path, errno);
}

bool is_selected(const ExportCommand& command, const json::Raw& row) {
  const std::string name = json::View(row)["name"].as_string().value_or("");
  return command.names.empty() || any_glob_matches(command.names, name);
}

void print_export_json(const ExportCommand& command, const clients::ExportedFile& file, std::size_t servers) {
  json::Writer out;
  out.begin_object().key("client").string(command.client).key("servers").unsigned_integer(servers);
  if (command.output.empty()) {
    out.key("text").string(file.text);
  } else {
    out.key("file").string(command.output);
  }
  out.key("remarks").begin_array();
  for (const clients::Remark& remark : file.remarks) out.string(remark.message);
  out.end_array().end_object();
  print_json(out.text());
}

Task<Result<int>> ExportCommand::run(const ExportCommand& command, AdminClientPtr client) {
  const clients::Client* const format = clients::find_client(command.client);
  if (!format) co_return unknown_client(command.client);
  const Result<std::vector<json::Raw>> rows = co_await client->list("/mcp/servers");
  if (!rows) co_return rows.error();
  std::vector<json::Raw> selected;
  for (const json::Raw& row : *rows)
    if (is_selected(command, row)) selected.push_back(row);
  if (selected.empty()) co_return Error(ErrorKind::validation, "no server has such a name");
  const Result<clients::ExportedFile> file = clients::write_client_file(*format, selected);
  if (!file) co_return file.error();
  if (!command.options.json)
    for (const clients::Remark& remark : file->remarks)
      std::fprintf(stderr, "note: %s\n", printable_line(remark.message).c_str());
  if (!command.output.empty()) {
    const Result<void> written = write_file(command.output, file->text, command.overwrite);
    if (!written) co_return written.error();
  }
  if (command.options.json) {
    print_export_json(command, *file, selected.size());
    co_return kSuccess;
  }
  if (command.output.empty()) {
    print_text(file->text);
    co_return kSuccess;
  }
  std::fprintf(stderr, "%zu servers written to %s\n", selected.size(), command.output.c_str());
  co_return kSuccess;
}

}  // namespace

void add_server_export_command(CLI::App& servers, int& status) {
  add_admin_command<ExportCommand>(
      servers, "export", "Print servers in the format of a client's file; secrets are not exported", status);
}

}  // namespace fairlead::cli
