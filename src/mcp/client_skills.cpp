// ClientSession: skills of the server. Files are read one at a time and rejected if they do not match the
// entry of their skill.
#include "fairlead/base/base64.hpp"
#include "fairlead/loop/timer.hpp"
#include "json/members.hpp"
#include "json/walk.hpp"
#include "loop/slices.hpp"
#include "mcp/client_session.hpp"
#include "mcp/front_matter.hpp"
#include "mcp/skills.hpp"

namespace fairlead::mcp {

namespace {

constexpr std::size_t kMaxVerifiedSkills = 1000;

Error skill_file_error(const std::string& uri, const std::string& reason) {
  return Error(ErrorKind::validation, uri + " is rejected: " + reason);
}

// Returns the file that a resources/read result contains. Fails unless `contents` is exactly the resource
// `uri`.
Result<SkillFile> skill_file_from(const SkillEntry& skill, const std::string& uri,
                                  std::vector<ResourceContents> contents) {
  if (contents.size() != 1 || contents.front().uri != uri)
    return skill_file_error(uri, "the server returned another resource");
  ResourceContents& resource = contents.front();
  std::optional<std::string> bytes =
      resource.text ? std::move(resource.text) : base64_decode(resource.blob.value_or("?"));
  if (!bytes) return skill_file_error(uri, "it is neither text nor base64");
  return SkillFile{uri.substr(skill.directory().size()), std::move(*bytes), std::move(resource.mime_type)};
}

const SkillEntry::File* find_file_entry(const SkillEntry& skill, std::string_view uri) {
  for (const SkillEntry::File& file : skill.files()) {
    if (file.uri == uri) return &file;
  }
  return nullptr;
}

// Returns an error if the file does not match the entry of its skill.
std::optional<Error> check_skill_file(const SkillEntry& skill, const std::string& uri,
                                      const SkillFile& file) {
  if (const SkillEntry::File* expected = find_file_entry(skill, uri)) {
    if (expected->size != file.content.size())
      return skill_file_error(uri, "it has " + std::to_string(file.content.size()) + " bytes, but " +
                                       std::to_string(expected->size) + " in the entry of its skill");
    if (expected->digest != sha256_digest(file.content))
      return skill_file_error(uri, "its digest differs from the entry of its skill");
  }
  if (uri != skill.uri()) return std::nullopt;
  const Result<json::Raw> matter = read_front_matter(file.content);
  if (!matter) return skill_file_error(uri, matter.error().message());
  if (skill.frontmatter().text().size() > 2 * kMaxFrontMatterBytes ||
      !same_value(json::View(*matter), skill.frontmatter()))
    return skill_file_error(uri, "its front matter differs from the entry of its skill");
  return std::nullopt;
}

}  // namespace

Task<Result<std::vector<SkillEntry>>> ClientSession::skills() {
  const auto keep_alive = self();
  const Result<std::vector<json::Raw>> listed = co_await list("skills/list", "skills");
  if (!listed) co_return listed.error();
  std::vector<SkillEntry> all;
  Slices slices;
  for (const json::Raw& raw : *listed) {
    Result<SkillEntry> entry = SkillEntry::parse(raw);
    if (entry) {
      all.push_back(std::move(*entry));
    } else {
      options_.connect.log.warning("skill omitted", {{"problem", entry.error().message()}});
    }
    if (slices.due(raw.text().size())) co_await sleep_for(loop_, Slices::kPause);
  }
  co_return all;
}

Task<Result<SkillEntry>> Client::skill(std::string uri) {
  const auto keep_alive = shared_from_this();
  ClientCallOptions options;
  const Result<json::Raw> response = co_await request("skills/get", uri_params(uri), std::move(options));
  if (!response) co_return response.error();
  Result<SkillEntry> entry = SkillEntry::parse(raw_part(*response, json::View(*response)["skill"]));
  if (entry && entry->uri() != uri) co_return skill_file_error(uri, "the server returned another skill");
  co_return entry;
}

Task<Result<SkillFile>> ClientSession::read_skill_file(SkillEntry skill, std::string uri) {
  const auto keep_alive = self();
  const bool known =
      skill.dynamic() ? is_in_directory(uri, skill.directory()) : find_file_entry(skill, uri) != nullptr;
  if (!known) co_return skill_file_error(uri, "it is not a file of skill " + skill.uri());
  if (uri == skill.uri()) {
    Result<SkillFile> skill_md = co_await read_and_verify_skill_md(skill);
    co_return skill_md;
  }
  const auto verified = verified_skills_.find(skill.uri());
  const bool is_verified =
      verified != verified_skills_.end() && verified->second == sha256_digest(skill.raw().text());
  if (!is_verified) {
    const Result<SkillFile> skill_md = co_await read_and_verify_skill_md(skill);
    if (!skill_md) co_return skill_md.error();
  }
  Result<SkillFile> file = co_await read_and_verify_file(skill, std::move(uri));
  co_return file;
}

// Afterwards the other files may be read, until the entry of the skill changes.
Task<Result<SkillFile>> ClientSession::read_and_verify_skill_md(SkillEntry skill) {
  verified_skills_.erase(skill.uri());
  Result<SkillFile> skill_md = co_await read_and_verify_file(skill, skill.uri());
  if (skill_md) {
    // read_skill_file() verifies the erased ones again.
    if (verified_skills_.size() >= kMaxVerifiedSkills) verified_skills_.clear();
    verified_skills_[skill.uri()] = sha256_digest(skill.raw().text());
  }
  co_return skill_md;
}

Task<Result<SkillFile>> ClientSession::read_and_verify_file(SkillEntry skill, std::string uri) {
  Result<std::vector<ResourceContents>> contents = co_await read_resource(uri);
  if (!contents) co_return contents.error();
  Result<SkillFile> file = skill_file_from(skill, uri, std::move(*contents));
  if (!file) co_return file;
  if (std::optional<Error> error = check_skill_file(skill, uri, *file)) {
    options_.connect.log.warning("skill file rejected", {{"reason", error->message()}});
    co_return *error;
  }
  co_return file;
}

Task<Result<std::vector<json::Raw>>> Client::read_directory(std::string uri) {
  const auto keep_alive = shared_from_this();
  std::vector<json::Raw> all;
  json::Raw params = uri_params(uri);
  const ListLimits limits;
  std::size_t bytes = 0;
  for (std::size_t page = 0; page < limits.max_list_pages; ++page) {
    ClientCallOptions options;
    const Result<json::Raw> response =
        co_await request("resources/directory/read", params, std::move(options));
    if (!response) co_return response.error();
    bytes += response->text().size();
    if (bytes > limits.max_list_bytes)
      co_return list_limit_error("resources/directory/read", "max_list_bytes", limits.max_list_bytes);
    const json::Members members(json::View(*response), {"resources", "nextCursor"});
    const json::View entries = members["resources"];
    if (!entries.is(json::Type::array))
      co_return Error(ErrorKind::validation,
                      "the result of resources/directory/read has no array `resources`");
    Slices slices;
    json::ElementWalk walk(entries.text());
    while (all.size() <= limits.max_list_entries && walk.next()) {
      all.push_back(raw_part(*response, json::View(walk.value())));
      if (slices.due(walk.value().size())) co_await sleep_for(connection().loop(), Slices::kPause);
    }
    if (all.size() > limits.max_list_entries)
      co_return list_limit_error("resources/directory/read", "max_list_entries", limits.max_list_entries);
    const json::View next = members["nextCursor"];
    if (!next.is(json::Type::string)) co_return all;
    params = uri_params(uri, next);
  }
  co_return list_limit_error("resources/directory/read", "max_list_pages", limits.max_list_pages);
}

}  // namespace fairlead::mcp
