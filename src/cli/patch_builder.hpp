// PatchBuilder: builds a JSON object from options, such as a row or a merge patch (RFC 7396).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fairlead/base/result.hpp"
#include "fairlead/json/raw.hpp"

namespace fairlead::json {
class Writer;
}

namespace fairlead::cli {

class PatchBuilder {
 public:
  PatchBuilder() = default;

  bool empty() const noexcept { return members_.empty(); }
  // Sets the member at `path`; creates the objects that contain it. Replaces an earlier value.
  void set(const std::vector<std::string>& path, json::Raw value);
  void set_string(const std::vector<std::string>& path, std::string_view value);
  void set_strings(const std::vector<std::string>& path, const std::vector<std::string>& values);
  // Sets `path` and the key of "KEY=VALUE". Fails with `validation` if there is no =.
  Result<void> set_pair(std::vector<std::string> path, std::string_view option, const std::string& pair);
  // Sets the member of "a.b.c=VALUE"; VALUE is JSON, or else a text.
  Result<void> set_assignment(std::string_view option, const std::string& assignment);
  void remove(const std::vector<std::string>& path) { set(path, json::Raw::null()); }

  json::Raw finish() const;

 private:
  PatchBuilder& child(const std::string& key);
  void write(json::Writer& writer) const;

  std::vector<std::pair<std::string, std::shared_ptr<PatchBuilder>>> members_;
  json::Raw value_;  // present: this is no object
};

// Splits "a.b.c".
std::vector<std::string> split_member_path(std::string_view path);

}  // namespace fairlead::cli
