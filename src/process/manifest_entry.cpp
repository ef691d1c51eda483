#include "process/manifest_entry.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <ranges>

#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"
#include "process/files.hpp"
#include "process/keeper/manifest_append.hpp"
#include "process/keeper/protocol.hpp"

namespace fairlead::process {

namespace {

constexpr std::string_view kHeader = keeper::kManifestHeader;

std::uint64_t number_field(json::View entry, std::string_view key) {
  const std::int64_t value = entry[key].as_int().value_or(0);
  return value > 0 ? static_cast<std::uint64_t>(value) : 0;
}

std::string text_field(json::View entry, std::string_view key) {
  return entry[key].as_string().value_or("");
}

bool is_decimal(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Returns whether a path begins with a slash and has no empty, `.` or `..` component.
bool is_normalized(std::string_view path) {
  if (!path.starts_with('/')) return false;
  return std::ranges::none_of(std::views::split(path.substr(1), '/'), [](const auto& part) {
    const std::string_view component(part.begin(), part.end());
    return component.empty() || component == "." || component == "..";
  });
}

std::optional<ManifestEntry> parse_line(std::string_view line) {
  const Result<json::Raw> json = json::Raw::parse(line);
  if (!json) return std::nullopt;
  const json::View view(*json);
  ManifestEntry entry;
  const std::uint64_t pid = number_field(view, "pid");
  // Pid 1 is the init process, which the library never starts.
  if (pid <= 1 || pid > INT32_MAX) return std::nullopt;
  entry.identity = {static_cast<pid_t>(pid), number_field(view, "start"), number_field(view, "inode")};
  entry.system = {text_field(view, "boot"), number_field(view, "pid_ns")};
  entry.fields = {text_field(view, "role"), text_field(view, "name"), text_field(view, "digest"),
                  text_field(view, "cookie"), text_field(view, "cgroup")};
  if (entry.identity.start == 0 || entry.system.boot_id.empty()) return std::nullopt;
  entry.line = line;
  return entry;
}

}  // namespace

SystemIdentity SystemIdentity::current() {
  SystemIdentity system;
  system.boot_id = read_whole_file("/proc/sys/kernel/random/boot_id");
  if (system.boot_id.ends_with('\n')) system.boot_id.pop_back();
  struct stat info {};
  if (::stat("/proc/self/ns/pid", &info) == 0) system.pid_namespace = info.st_ino;
  return system;
}

std::string format_entry_fields(const EntryFields& fields) {
  const SystemIdentity system = SystemIdentity::current();
  keeper::ProcessIdentity owner;
  keeper::read_process_identity(::getpid(), owner);
  json::Writer writer;
  writer.begin_object();
  writer.key("boot").string(system.boot_id).key("pid_ns").unsigned_integer(system.pid_namespace);
  writer.key("role").string(fields.role).key("name").string(fields.name);
  if (!fields.digest.empty()) writer.key("digest").string(fields.digest);
  if (!fields.cookie.empty()) writer.key("cookie").string(fields.cookie);
  if (!fields.cgroup.empty()) writer.key("cgroup").string(fields.cgroup);
  writer.key("owner").begin_object().key("pid").integer(owner.pid).key("start").unsigned_integer(owner.start);
  writer.end_object().end_object();
  std::string rest = writer.text();
  rest.front() = ',';
  return rest;
}

std::string entry_cgroup_name(const EntryFields& fields) {
  const std::string_view cookie = fields.cookie;
  const std::size_t dot = cookie.find('.');
  if (dot == std::string_view::npos) return {};
  const std::string_view keeper = cookie.substr(0, dot);
  const std::string_view token = cookie.substr(dot + 1);
  if (!is_decimal(keeper) || !is_decimal(token) || !is_normalized(fields.cgroup)) return {};
  std::string name = keeper::kCgroupPrefix;
  ((name += keeper) += '-') += token;
  return fields.cgroup.ends_with('/' + name) ? name : std::string();
}

ParsedManifest parse_manifest(std::string_view text) {
  ParsedManifest manifest;
  if (!text.starts_with(kHeader)) return manifest;
  manifest.is_manifest = true;
  text.remove_prefix(kHeader.size());
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    const std::string_view line = text.substr(0, newline);
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    // Lines that begin with `kill` are for users who do not parse JSON. They are ignored here, because a pid
    // alone does not identify a process.
    if (line.empty() || line.starts_with("kill ") || line == kHeader.substr(0, kHeader.size() - 1)) continue;
    std::optional<ManifestEntry> entry = parse_line(line);
    if (entry) {
      manifest.entries.push_back(std::move(*entry));
    } else {
      ++manifest.unreadable_line_count;
    }
  }
  return manifest;
}

}  // namespace fairlead::process
