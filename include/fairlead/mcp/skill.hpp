// Skills: directories of instructions for a model, each with a SKILL.md that describes it. A server offers
// their files as resources, and one entry per skill with the size and digest of every file. A client reads
// the files one at a time and rejects a file that does not match the entry. (Extension
// io.modelcontextprotocol/skills.)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fairlead/base/result.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/json/view.hpp"

namespace fairlead::mcp {

inline constexpr std::size_t kMaxSkillFiles = 512;        // of one skill
inline constexpr std::size_t kMaxSkillBytes = 16u << 20;  // of all files of one skill together

struct SkillFile {
  std::string path;  // relative to the skill's directory: "SKILL.md", "references/FORMS.md"
  std::string content;
  std::string mime_type{};  // if empty, derived from the file name extension
};

// A skill that a server offers.
struct Skill {
  // PATH of skill://PATH/SKILL.md. Its last component must be the name of the skill. If empty, PATH is the
  // name of the skill.
  std::string path;
  std::vector<SkillFile> files;
  bool dynamic = false;  // the files may change at any time: the entry lists no files and no digests

  // Reads all files below a directory, except names that begin with a dot. Fails with `io` if a file cannot
  // be read, and with `validation` if a limit above is exceeded or an entry is neither a file nor a directory
  // (symbolic links are not followed).
  static Result<Skill> read(const std::string& directory);
};

// The description of a skill as a client receives it from a server.
class SkillEntry {
 public:
  struct File {
    std::string uri;
    std::string digest;  // "sha256:" and 64 hexadecimal digits
    std::uint64_t size = 0;
  };

  // Fails with `validation` if the entry is invalid: its URI does not end with the skill's name and SKILL.md,
  // a file is outside of its directory or listed twice, a limit above is exceeded, SKILL.md is missing …
  static Result<SkillEntry> parse(json::Raw raw);

  const std::string& uri() const noexcept { return uri_; }  // the URI of SKILL.md
  std::string name() const { return frontmatter()["name"].as_string().value_or(""); }
  std::string description() const { return frontmatter()["description"].as_string().value_or(""); }
  json::View frontmatter() const { return json::View(raw_)["frontmatter"]; }
  bool dynamic() const noexcept { return dynamic_; }
  const std::vector<File>& files() const noexcept { return files_; }  // empty if dynamic()
  // The URI of the directory, with a trailing slash.
  std::string directory() const { return uri_.substr(0, uri_.size() - std::string_view("SKILL.md").size()); }
  const json::Raw& raw() const noexcept { return raw_; }

 private:
  explicit SkillEntry(json::Raw raw) : raw_(std::move(raw)) {}

  json::Raw raw_;
  std::string uri_;
  bool dynamic_ = false;
  std::vector<File> files_;
};

}  // namespace fairlead::mcp
