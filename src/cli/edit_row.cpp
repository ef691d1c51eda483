// Editing a row in the user's editor.
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/printable.hpp"
#include "base/read_file.hpp"
#include "cli/admin_command.hpp"
#include "cli/shell.hpp"
#include "cli/terminal.hpp"
#include "fairlead/loop/descriptor.hpp"
#include "registry/json.hpp"

namespace fairlead::cli {

constexpr FileLimit kEditedFileLimit{"max_edited_file_bytes", 16u << 20};

// A document in a file that only this user can read, because rows can have secrets. The file is removed
// unless keep() is called. Not in the anonymous namespace: it is part of the frame of a coroutine that is
// not, either.
class EditedFile {
 public:
  EditedFile() = default;
  ~EditedFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  EditedFile(const EditedFile&) = delete;
  EditedFile& operator=(const EditedFile&) = delete;

  Result<void> create(const std::string& text) {
    std::error_code unusable;
    const std::filesystem::path directory = std::filesystem::temp_directory_path(unusable);
    path_ = (unusable ? P_tmpdir : directory.string()) + "/fairlead-XXXXXX.json";
    const UniqueFd fd(::mkostemps(path_.data(), 5, O_CLOEXEC));  // mode 0600
    if (!fd) return Error::from_errno(ErrorKind::io, "cannot create " + path_, errno);
    if (::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) return {};
    return Error::from_errno(ErrorKind::io, "cannot write " + path_, errno);
  }

  Result<json::Raw> edit() {
    const Result<void> edited = edit_file(path_);
    if (!edited) return edited.error();
    const Result<std::string> text = read_regular_file(path_, kEditedFileLimit);
    if (!text) return Error(ErrorKind::validation, path_ + ": " + text.error().message());
    Result<json::Raw> document = json::Raw::parse(*text);
    if (!document) return Error(ErrorKind::parse, "the document is not JSON: " + document.error().message());
    if (!json::View(*document).is(json::Type::object))
      return Error(ErrorKind::parse, "the document is not a JSON object");
    return document;
  }

  void keep() {
    std::fprintf(stderr, "The edited document is in %s\n", path_.c_str());
    path_.clear();
  }

 private:
  std::string path_;
};

namespace {

bool is_set_by_registry(std::string_view key) {
  return key == "id" || key == "createdAt" || key == "updatedAt" || key == "version";
}

json::Raw editable_members(json::View row) {
  json::Writer writer;
  writer.begin_object();
  row.each_member([&](std::string_view key, bool escaped, json::View value) {
    const std::string name = escaped ? json::unescape(key) : std::string(key);
    if (!is_set_by_registry(name)) writer.key(name).raw(value.text());
    return true;
  });
  writer.end_object();
  return writer.finish();
}

bool wants_another_try(const Error& problem, std::chrono::milliseconds timeout) {
  return confirm(printable_line(problem.message()) + ". Edit again?", timeout).value_or(false);
}

// Returns what the user has made of the document.
Result<json::Raw> edit_until_valid(EditedFile& file, std::chrono::milliseconds timeout) {
  while (true) {
    Result<json::Raw> document = file.edit();
    const bool repeat = !document && document.error().kind() == ErrorKind::parse;
    if (!repeat || !wants_another_try(document.error(), timeout)) return document;
  }
}

}  // namespace

Task<Result<int>> edit_row(const AdminOptions& options, RowType type, AdminClientPtr client,
                           std::string name) {
  if (!has_terminal())
    co_return Error(ErrorKind::validation,
                    "there is no terminal for an editor; give the changes as options, or as JSON on stdin "
                    "(see --help)");
  AdminRequest read("GET", type.row_path(name));
  const Result<AdminReply> row = co_await client->send(std::move(read));
  if (!row) co_return row.error();
  const json::Raw before = editable_members(json::View(row->body));
  EditedFile file;
  const Result<void> created = file.create(indented_json(json::View(before)) + "\n");
  if (!created) co_return created.error();
  const Result<json::Raw> after = edit_until_valid(file, options.gateway.wait_limit());
  if (!after) {
    if (after.error().kind() == ErrorKind::parse) file.keep();
    co_return Error(ErrorKind::validation, after.error().message());
  }
  json::Raw patch = registry::merge_difference(json::View(before), json::View(*after));
  if (json::View(patch).size() == 0) {
    print_note(options, "Nothing was changed.");
    co_return kSuccess;
  }
  const Result<json::Raw> changed = co_await client->patch(type.row_path(name), std::move(patch), row->etag);
  if (!changed) {
    file.keep();
    co_return changed.error();
  }
  print_change(options, "Changed the " + type.noun + " `" + name + "`.", *changed);
  co_return kSuccess;
}

}  // namespace fairlead::cli
