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

std::uint64_t number(json::View entry, std::string_view key) {
  const std::int64_t value = entry[key].as_int().value_or(0);
  return value > 0 ? static_cast<std::uint64_t>(value) : 0;
}

std::string text(json::View entry, std::string_view key) {
  return entry[key].as_string().value_or("");
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Whether a path begins with a slash and has no empty, `.` or `..` component.
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
  const std::uint64_t pid = number(view, "pid");
  // 1 would be the system's first process, and is never ours.
  if (pid <= 1 || pid > INT32_MAX) return std::nullopt;
  entry.identity = {static_cast<pid_t>(pid), number(view, "start"), number(view, "inode")};
  entry.system = {text(view, "boot"), number(view, "pid_ns")};
  entry.facts = {text(view, "role"), text(view, "name"), text(view, "digest"), text(view, "cookie"),
                 text(view, "cgroup")};
  if (entry.identity.start == 0 || entry.system.boot.empty()) return std::nullopt;
  entry.line = line;
  return entry;
}

}  // namespace

SystemIdentity SystemIdentity::here() {
  SystemIdentity system;
  system.boot = read_whole("/proc/sys/kernel/random/boot_id");
  if (system.boot.ends_with('\n')) system.boot.pop_back();
  struct stat info {};
  if (::stat("/proc/self/ns/pid", &info) == 0) system.pid_ns = info.st_ino;
  return system;
}

std::string manifest_facts(const ManifestFacts& facts) {
  const SystemIdentity system = SystemIdentity::here();
  keeper::Identity owner;
  keeper::identify(::getpid(), owner);
  json::Writer writer;
  writer.begin_object();
  writer.key("boot").string(system.boot).key("pid_ns").unsigned_integer(system.pid_ns);
  writer.key("role").string(facts.role).key("name").string(facts.name);
  if (!facts.digest.empty()) writer.key("digest").string(facts.digest);
  if (!facts.cookie.empty()) writer.key("cookie").string(facts.cookie);
  if (!facts.cgroup.empty()) writer.key("cgroup").string(facts.cgroup);
  writer.key("owner").begin_object().key("pid").integer(owner.pid).key("start").unsigned_integer(owner.start);
  writer.end_object().end_object();
  std::string rest = writer.text();
  rest.front() = ',';
  return rest;
}

std::string own_cgroup_name(const ManifestFacts& facts) {
  const std::string_view cookie = facts.cookie;
  const std::size_t dot = cookie.find('.');
  if (dot == std::string_view::npos) return {};
  const std::string_view keeper = cookie.substr(0, dot);
  const std::string_view token = cookie.substr(dot + 1);
  if (!is_number(keeper) || !is_number(token) || !is_normalized(facts.cgroup)) return {};
  std::string name = keeper::kCgroupPrefix;
  ((name += keeper) += '-') += token;
  return facts.cgroup.ends_with('/' + name) ? name : std::string();
}

ManifestText parse_manifest(std::string_view text) {
  ManifestText manifest;
  if (!text.starts_with(kHeader)) return manifest;
  manifest.valid = true;
  text.remove_prefix(kHeader.size());
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    const std::string_view line = text.substr(0, newline);
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    // The simple form stands beside the full one; alone it does not say which process it means.
    if (line.empty() || line.starts_with("kill ") || line == kHeader.substr(0, kHeader.size() - 1)) continue;
    std::optional<ManifestEntry> entry = parse_line(line);
    if (entry) {
      manifest.entries.push_back(std::move(*entry));
    } else {
      ++manifest.unreadable;
    }
  }
  return manifest;
}

}  // namespace fairlead::process
