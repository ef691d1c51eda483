// Skills: directories of instructions for a model, each with a SKILL.md that says what it is for. A server
// offers them as resources, with an entry each that names every file with its size and digest; a client reads
// them file by file and believes nothing that the entry does not vouch for. (Extension
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

inline constexpr std::size_t kMostSkillFiles = 512;
inline constexpr std::size_t kMostSkillBytes = 16u << 20;

struct SkillFile {
  std::string path;  // inside the skill: "SKILL.md", "references/FORMS.md"
  std::string content;
  std::string mime_type{};  // empty: by its ending
};

// What a server offers.
struct Skill {
  std::string path;  // of skill://PATH/SKILL.md, ending with the skill's name; empty: the name alone
  std::vector<SkillFile> files;
  bool dynamic = false;  // its files may change at any time: none are promised, by digest or at all

  // Everything below a directory, read now, except for names that begin with a dot. Kind io, and validation
  // over the limits above and for what is neither file nor directory (links are not followed).
  static Result<Skill> read(const std::string& directory);
};

// What a server says of a skill.
class SkillEntry {
 public:
  struct File {
    std::string uri;
    std::string digest;  // "sha256:" and 64 hexadecimal digits
    std::uint64_t size = 0;
  };

  // Kind validation when it is none: an address that does not end with the skill's name and SKILL.md, files
  // outside of its directory or listed twice, over the limits, SKILL.md missing …
  static Result<SkillEntry> parse(json::Raw raw);

  const std::string& uri() const noexcept { return uri_; }  // of its SKILL.md
  std::string name() const { return frontmatter()["name"].as_string().value_or(""); }
  std::string description() const { return frontmatter()["description"].as_string().value_or(""); }
  json::View frontmatter() const { return json::View(raw_)["frontmatter"]; }
  bool dynamic() const noexcept { return dynamic_; }
  const std::vector<File>& files() const noexcept { return files_; }  // empty when it is dynamic
  // The directory, with a slash at its end.
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
