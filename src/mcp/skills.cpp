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

constexpr std::string_view kSkillMd = "SKILL.md";
constexpr std::string_view kScheme = "skill://";
constexpr std::string_view kHex = "0123456789abcdef";

Error skill_error(const std::string& skill, const std::string& reason) {
  return Error(ErrorKind::validation, "skill " + skill + ": " + reason);
}
std::string too_many_files_problem() {
  return "it has more than " + std::to_string(kMaxSkillFiles) + " files";
}
std::string too_many_bytes_problem() {
  return "its files have more than " + std::to_string(kMaxSkillBytes) + " bytes";
}

// ---- URIs and paths -------------------------------------------------------------------------------------

// Percent-encodes a path for a URI. Slashes are not encoded.
std::string percent_encode_path(std::string_view path) {
  constexpr std::string_view kUnescaped =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=:@/";
  constexpr std::string_view kUpperHex = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : path) {
    if (kUnescaped.find(c) != std::string_view::npos) {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += '%';
      encoded += kUpperHex[byte >> 4];
      encoded += kUpperHex[byte & 15];
    }
  }
  return encoded;
}

// Returns whether every component of a path is a name (not empty, `.` or `..`), so that the path stays inside
// its directory.
bool is_relative_path(std::string_view path) {
  while (true) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == ".." || part.find('\0') != std::string_view::npos)
      return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

std::string_view last_component(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// ---- file types -----------------------------------------------------------------------------------------

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
  return uri.starts_with(directory) && is_relative_path(uri.substr(directory.size()));
}

std::string sha256_digest(std::string_view bytes) {
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  ::EVP_Digest(bytes.data(), bytes.size(), hash, &size, ::EVP_sha256(), nullptr);
  std::string digest = "sha256:";
  for (unsigned i = 0; i < size; ++i) {
    digest += kHex[hash[i] >> 4];
    digest += kHex[hash[i] & 15];
  }
  return digest;
}

// ---- reading a directory --------------------------------------------------------------------------------

Result<Skill> Skill::read(const std::string& directory) {
  namespace fs = std::filesystem;
  Skill skill;
  std::size_t bytes = 0;
  std::error_code error;
  const auto unreadable = [&](const std::string& path) {
    return Error(ErrorKind::io, "cannot read " + path + (error ? ": " + error.message() : ""));
  };
  fs::recursive_directory_iterator iterator(directory, error);
  for (; !error && iterator != fs::recursive_directory_iterator(); iterator.increment(error)) {
    const fs::path& path = iterator->path();
    const fs::file_status status = iterator->symlink_status(error);
    if (error) break;
    if (path.filename().native().starts_with('.')) {
      iterator.disable_recursion_pending();
      continue;
    }
    if (status.type() == fs::file_type::directory) continue;
    if (status.type() != fs::file_type::regular)
      return skill_error(directory, path.string() + " is neither a file nor a directory");
    if (skill.files.size() == kMaxSkillFiles) return skill_error(directory, too_many_files_problem());
    bytes += iterator->file_size(error);
    if (error) break;
    if (bytes > kMaxSkillBytes) return skill_error(directory, too_many_bytes_problem());
    std::ifstream in(path, std::ios::binary);
    std::string content((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    if (!in) return unreadable(path.string());
    skill.files.push_back(SkillFile{path.lexically_relative(directory).generic_string(), std::move(content)});
  }
  if (error) return unreadable(directory);
  std::ranges::sort(skill.files, {}, &SkillFile::path);
  return skill;
}

// ---- offering a skill (server) --------------------------------------------------------------------------

namespace {

// Returns the front matter of a SKILL.md. Fails if the name or the description, which are required, is
// invalid.
Result<json::Raw> checked_front_matter(const std::string& label, std::string_view markdown) {
  Result<json::Raw> matter = read_front_matter(markdown);
  if (!matter) return skill_error(label, matter.error().message());
  const json::View view(*matter);
  if (!is_skill_name(view["name"].as_string().value_or("")))
    return skill_error(label, "its name is not 1 to 64 lower case letters, digits and single hyphens");
  if (view["description"].as_string().value_or("").empty())
    return skill_error(label, "it has no description");
  return matter;
}

json::Raw encode_entry(const RegisteredSkill& skill, const json::Raw& front_matter, bool dynamic) {
  json::Writer out;
  out.begin_object().key("uri").string(skill.uri).key("frontmatter").raw(front_matter).key("resources");
  if (dynamic) {
    out.string("dynamic");
  } else {
    out.begin_array();
    for (const auto& file : skill.files) {
      out.begin_object().key("uri").string(file->spec.uri).key("digest").string(sha256_digest(file->content));
      out.key("size").unsigned_integer(file->content.size()).end_object();
    }
    out.end_array();
  }
  out.end_object();
  return out.finish();
}

}  // namespace

Result<RegisteredSkill> make_registered_skill(Skill skill) {
  const std::string label = skill.path.empty() ? "(without a path)" : skill.path;
  const auto skill_md = std::ranges::find(skill.files, kSkillMd, &SkillFile::path);
  if (skill_md == skill.files.end()) return skill_error(label, "it has no SKILL.md");
  const Result<json::Raw> matter = checked_front_matter(label, skill_md->content);
  if (!matter) return matter.error();
  if (!is_utf8(skill_md->content)) return skill_error(label, "its SKILL.md is not UTF-8");
  const std::string name = *json::View(*matter)["name"].as_string();
  const std::string path = skill.path.empty() ? name : skill.path;
  if (!is_relative_path(path) || last_component(path) != name)
    return skill_error(label, "its path does not end with its name, `" + name + "`");
  if (skill.files.size() > kMaxSkillFiles) return skill_error(label, too_many_files_problem());

  RegisteredSkill registered;
  const std::string directory = std::string(kScheme) + percent_encode_path(path) + "/";
  registered.uri = directory + std::string(kSkillMd);
  registered.resource.uri = registered.uri;
  registered.resource.name = name;
  registered.resource.description = *json::View(*matter)["description"].as_string();
  registered.resource.mime_type = "text/markdown";
  if (!skill.dynamic) registered.resource.size = skill_md->content.size();
  std::size_t bytes = 0;
  std::set<std::string> seen;
  for (SkillFile& file : skill.files) {
    if (!is_relative_path(file.path))
      return skill_error(label, "`" + file.path + "` is not the path of a file in it");
    if (!seen.insert(file.path).second) return skill_error(label, file.path + " is listed twice");
    bytes += file.content.size();
    if (bytes > kMaxSkillBytes) return skill_error(label, too_many_bytes_problem());
    auto served = std::make_shared<RegisteredSkillFile>();
    served->is_text = is_utf8(file.content);
    served->spec.uri = directory + percent_encode_path(file.path);
    served->spec.name = last_component(file.path);
    served->spec.mime_type =
        file.mime_type.empty() ? mime_type_of(file.path, served->is_text) : std::move(file.mime_type);
    served->spec.size = file.content.size();
    served->content = std::move(file.content);
    registered.files.push_back(std::move(served));
  }
  registered.entry_json = encode_entry(registered, *matter, skill.dynamic);
  return registered;
}

// ---- parsing an entry (client) --------------------------------------------------------------------------

namespace {

bool is_digest(std::string_view text) {
  return text.starts_with("sha256:") && text.size() == 71 &&
         text.substr(7).find_first_not_of(kHex) == std::string_view::npos;
}

}  // namespace

Result<SkillEntry> SkillEntry::parse(json::Raw raw) {
  SkillEntry entry(std::move(raw));
  const json::View view(entry.raw_);
  entry.uri_ = view["uri"].as_string().value_or("");
  const std::string label = entry.uri_.empty() ? "without a uri" : entry.uri_;
  const std::string ending = "/" + entry.name() + "/" + std::string(kSkillMd);
  if (!is_skill_name(entry.name()) || !entry.uri_.ends_with(ending))
    return skill_error(label, "its URI does not end with its name and SKILL.md");
  if (entry.description().empty()) return skill_error(label, "it has no description");
  const json::View resources = view["resources"];
  entry.dynamic_ = resources.as_string() == "dynamic";
  if (entry.dynamic_) return entry;
  if (!resources.is(json::Type::array))
    return skill_error(label, "its resources are neither an array nor `dynamic`");
  if (resources.size() > kMaxSkillFiles) return skill_error(label, too_many_files_problem());
  const std::string directory = entry.directory();
  std::string problem;
  std::uint64_t bytes = 0;
  std::set<std::string> seen;
  resources.each_element([&](json::View resource) {
    File file{resource["uri"].as_string().value_or(""), resource["digest"].as_string().value_or(""), 0};
    const std::int64_t size = resource["size"].as_int().value_or(-1);
    file.size = static_cast<std::uint64_t>(std::max<std::int64_t>(size, 0));
    bytes += std::min<std::uint64_t>(file.size, kMaxSkillBytes + 1);
    if (!is_in_directory(file.uri, directory)) {
      problem = "`" + file.uri + "` is not in its directory";
    } else if (!is_digest(file.digest) || size < 0) {
      problem = file.uri + " has no digest or no size";
    } else if (!seen.insert(file.uri).second) {
      problem = file.uri + " is listed twice";
    } else if (bytes > kMaxSkillBytes) {
      problem = too_many_bytes_problem();
    }
    entry.files_.push_back(std::move(file));
    return problem.empty();
  });
  if (problem.empty() && !seen.contains(entry.uri_)) problem = "its SKILL.md is not among its files";
  if (!problem.empty()) return skill_error(label, problem);
  return entry;
}

}  // namespace fairlead::mcp
