#include "admin/process_usage.hpp"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "registry/tokens.hpp"

namespace fairlead::admin {

// The fields of /proc/PID/stat after the command, which is in parentheses and may contain spaces.
std::optional<ProcessUsage> usage_of_process(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::size_t end = text.rfind(')');
  if (end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(end + 1));
  std::string skipped;
  constexpr int kFieldsBeforeUserTime = 11;
  for (int i = 0; i < kFieldsBeforeUserTime; ++i) fields >> skipped;
  std::uint64_t user = 0;
  std::uint64_t system = 0;
  fields >> user >> system;
  constexpr int kFieldsBeforeResident = 8;
  for (int i = 0; i < kFieldsBeforeResident; ++i) fields >> skipped;
  std::uint64_t pages = 0;
  fields >> pages;
  if (!fields) return std::nullopt;
  ProcessUsage usage;
  usage.memory_bytes = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  usage.cpu_seconds = static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return usage;
}

std::string shown_upstream_key(const std::string& key) {
  constexpr std::size_t kDigestChars = 16;
  return registry::sha256_hex(key).substr(0, kDigestChars);
}

}  // namespace fairlead::admin
