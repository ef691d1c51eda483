#include "fairlead/mcp/skill.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "json/utf8.hpp"
#include "mcp/front_matter.hpp"
#include "mcp/skills.hpp"

namespace fairlead::mcp {

namespace {

constexpr std::string_view kMain = "SKILL.md";
constexpr std::string_view kScheme = "skill://";
constexpr std::string_view kHex = "0123456789abcdef";

Error bad_skill(const std::string& which, const std::string& why) {
  return Error(ErrorKind::validation, "skill " + which + ": " + why);
}
std::string over_files() {
  return "it has more than " + std::to_string(kMostSkillFiles) + " files";
}
std::string over_bytes() {
  return "its files have more than " + std::to_string(kMostSkillBytes) + " bytes";
}

// ---- addresses ------------------------------------------------------------------------------------------

// A path as a URI has it. Slashes stay.
std::string encoded_path(std::string_view path) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=:@/";
  constexpr std::string_view kUpperHex = "0123456789ABCDEF";
  std::string made;
  for (const char c : path) {
    if (kPlain.find(c) != std::string_view::npos) {
      made += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      made += '%';
      made += kUpperHex[byte >> 4];
      made += kUpperHex[byte & 15];
    }
  }
  return made;
}

// Whether each part of a path is a name: nothing that leads elsewhere.
bool is_path(std::string_view path) {
  while (true) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == ".." || part.find('\0') != std::string_view::npos)
      return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

std::string_view last_part(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// ---- kinds of files -------------------------------------------------------------------------------------

bool is_utf8(std::string_view text) {
  return json::find_invalid_utf8(text.data(), text.data() + text.size()) == text.data() + text.size();
}

std::string mime_type_of(std::string_view path, bool is_text) {
  constexpr std::pair<std::string_view, const char*> kTypes[] = {
      {".md", "text/markdown"},      {".txt", "text/plain"},       {".json", "application/json"},
      {".yaml", "application/yaml"}, {".yml", "application/yaml"}, {".html", "text/html"},
      {".css", "text/css"},          {".csv", "text/csv"},         {".xml", "application/xml"},
      {".js", "text/javascript"},    {".py", "text/x-python"},     {".sh", "application/x-sh"},
      {".png", "image/png"},         {".jpg", "image/jpeg"},       {".jpeg", "image/jpeg"},
      {".gif", "image/gif"},         {".svg", "image/svg+xml"},    {".webp", "image/webp"},
      {".pdf", "application/pdf"},   {".zip", "application/zip"}};
  for (const auto& [ending, type] : kTypes) {
    if (path.ends_with(ending)) return type;
  }
  return is_text ? "text/plain" : "application/octet-stream";
}

}  // namespace

bool is_skill_name(std::string_view name) noexcept {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789-";
  return !name.empty() && name.size() <= 64 && name.find_first_not_of(kAllowed) == std::string_view::npos &&
         name.front() != '-' && name.back() != '-' && name.find("--") == std::string_view::npos;
}

bool is_in_directory(std::string_view uri, std::string_view directory) {
  return uri.starts_with(directory) && is_path(uri.substr(directory.size()));
}

std::string digest_of(std::string_view bytes) {
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  ::EVP_Digest(bytes.data(), bytes.size(), hash, &size, ::EVP_sha256(), nullptr);
  std::string made = "sha256:";
  for (unsigned i = 0; i < size; ++i) {
    made += kHex[hash[i] >> 4];
    made += kHex[hash[i] & 15];
  }
  return made;
}

// ---- from a directory -----------------------------------------------------------------------------------

Result<Skill> Skill::read(const std::string& directory) {
  namespace fs = std::filesystem;
  Skill skill;
  std::size_t bytes = 0;
  std::error_code failed;
  const auto unreadable = [&](const std::string& path) {
    return Error(ErrorKind::io, "cannot read " + path + (failed ? ": " + failed.message() : ""));
  };
  fs::recursive_directory_iterator each(directory, failed);
  for (; !failed && each != fs::recursive_directory_iterator(); each.increment(failed)) {
    const fs::path& path = each->path();
    const fs::file_status status = each->symlink_status(failed);
    if (failed) break;
    if (path.filename().native().starts_with('.')) {
      each.disable_recursion_pending();
      continue;
    }
    if (status.type() == fs::file_type::directory) continue;
    if (status.type() != fs::file_type::regular)
      return bad_skill(directory, path.string() + " is neither a file nor a directory");
    if (skill.files.size() == kMostSkillFiles) return bad_skill(directory, over_files());
    bytes += each->file_size(failed);
    if (failed) break;
    if (bytes > kMostSkillBytes) return bad_skill(directory, over_bytes());
    std::ifstream in(path, std::ios::binary);
    std::string content((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    if (!in) return unreadable(path.string());
    skill.files.push_back(SkillFile{path.lexically_relative(directory).generic_string(), std::move(content)});
  }
  if (failed) return unreadable(directory);
  std::ranges::sort(skill.files, {}, &SkillFile::path);
  return skill;
}

// ---- what a server makes of it --------------------------------------------------------------------------

namespace {

// The front matter of a skill, with the name and the description that every skill has.
Result<json::Raw> checked_front_matter(const std::string& which, std::string_view markdown) {
  Result<json::Raw> matter = read_front_matter(markdown);
  if (!matter) return bad_skill(which, matter.error().message());
  const json::View view(*matter);
  if (!is_skill_name(view["name"].as_string().value_or("")))
    return bad_skill(which, "its name is not 1 to 64 lower case letters, digits and single hyphens");
  if (view["description"].as_string().value_or("").empty()) return bad_skill(which, "it has no description");
  return matter;
}

json::Raw encode(const OfferedSkill& skill, const json::Raw& front_matter, bool dynamic) {
  json::Writer out;
  out.begin_object().key("uri").string(skill.uri).key("frontmatter").raw(front_matter).key("resources");
  if (dynamic) {
    out.string("dynamic");
  } else {
    out.begin_array();
    for (const auto& file : skill.files) {
      out.begin_object().key("uri").string(file->spec.uri).key("digest").string(digest_of(file->content));
      out.key("size").unsigned_integer(file->content.size()).end_object();
    }
    out.end_array();
  }
  out.end_object();
  return out.finish();
}

}  // namespace

Result<OfferedSkill> offer(Skill skill) {
  const std::string which = skill.path.empty() ? "(of memory)" : skill.path;
  const auto main = std::ranges::find(skill.files, kMain, &SkillFile::path);
  if (main == skill.files.end()) return bad_skill(which, "it has no SKILL.md");
  const Result<json::Raw> matter = checked_front_matter(which, main->content);
  if (!matter) return matter.error();
  if (!is_utf8(main->content)) return bad_skill(which, "its SKILL.md is not UTF-8");
  const std::string name = *json::View(*matter)["name"].as_string();
  const std::string path = skill.path.empty() ? name : skill.path;
  if (!is_path(path) || last_part(path) != name)
    return bad_skill(which, "its path does not end with its name, `" + name + "`");
  if (skill.files.size() > kMostSkillFiles) return bad_skill(which, over_files());

  OfferedSkill made;
  const std::string directory = std::string(kScheme) + encoded_path(path) + "/";
  made.uri = directory + std::string(kMain);
  made.listed.uri = made.uri;
  made.listed.name = name;
  made.listed.description = *json::View(*matter)["description"].as_string();
  made.listed.mime_type = "text/markdown";
  if (!skill.dynamic) made.listed.size = main->content.size();
  std::size_t bytes = 0;
  std::set<std::string> seen;
  for (SkillFile& file : skill.files) {
    if (!is_path(file.path)) return bad_skill(which, "`" + file.path + "` is not the path of a file in it");
    if (!seen.insert(file.path).second) return bad_skill(which, file.path + " is there twice");
    bytes += file.content.size();
    if (bytes > kMostSkillBytes) return bad_skill(which, over_bytes());
    auto served = std::make_shared<OfferedFile>();
    served->is_text = is_utf8(file.content);
    served->spec.uri = directory + encoded_path(file.path);
    served->spec.name = last_part(file.path);
    served->spec.mime_type =
        file.mime_type.empty() ? mime_type_of(file.path, served->is_text) : std::move(file.mime_type);
    served->spec.size = file.content.size();
    served->content = std::move(file.content);
    made.files.push_back(std::move(served));
  }
  made.entry = encode(made, *matter, skill.dynamic);
  return made;
}

// ---- what a client makes of an entry --------------------------------------------------------------------

namespace {

bool is_digest(std::string_view text) {
  return text.starts_with("sha256:") && text.size() == 71 &&
         text.substr(7).find_first_not_of(kHex) == std::string_view::npos;
}

}  // namespace

Result<SkillEntry> SkillEntry::parse(json::Raw raw) {
  SkillEntry made(std::move(raw));
  const json::View view(made.raw_);
  made.uri_ = view["uri"].as_string().value_or("");
  const std::string which = made.uri_.empty() ? "without a uri" : made.uri_;
  const std::string ending = "/" + made.name() + "/" + std::string(kMain);
  if (!is_skill_name(made.name()) || !made.uri_.ends_with(ending))
    return bad_skill(which, "its address does not end with its name and SKILL.md");
  if (made.description().empty()) return bad_skill(which, "it has no description");
  const json::View resources = view["resources"];
  made.dynamic_ = resources.as_string() == "dynamic";
  if (made.dynamic_) return made;
  if (!resources.is(json::Type::array))
    return bad_skill(which, "its resources are neither a list nor dynamic");
  if (resources.size() > kMostSkillFiles) return bad_skill(which, over_files());
  const std::string directory = made.directory();
  std::string problem;
  std::uint64_t bytes = 0;
  std::set<std::string> seen;
  resources.each_element([&](json::View one) {
    File file{one["uri"].as_string().value_or(""), one["digest"].as_string().value_or(""), 0};
    const std::int64_t size = one["size"].as_int().value_or(-1);
    file.size = static_cast<std::uint64_t>(std::max<std::int64_t>(size, 0));
    bytes += std::min<std::uint64_t>(file.size, kMostSkillBytes + 1);
    if (!is_in_directory(file.uri, directory)) {
      problem = "`" + file.uri + "` is not in its directory";
    } else if (!is_digest(file.digest) || size < 0) {
      problem = file.uri + " has no digest or no size";
    } else if (!seen.insert(file.uri).second) {
      problem = file.uri + " is there twice";
    } else if (bytes > kMostSkillBytes) {
      problem = over_bytes();
    }
    made.files_.push_back(std::move(file));
    return problem.empty();
  });
  if (problem.empty() && !seen.contains(made.uri_)) problem = "its SKILL.md is not among its files";
  if (!problem.empty()) return bad_skill(which, problem);
  return made;
}

}  // namespace fairlead::mcp
