// A client and the skills of its server: read one file at a time, and only believed when the entry vouches
// for what was read.
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

constexpr std::size_t kMostChecked = 1000;

Error not_to_be_used(const std::string& uri, const std::string& why) {
  return Error(ErrorKind::validation, uri + " is not to be used: " + why);
}

// The bytes of the one file that was asked for.
Result<SkillFile> file_of(const SkillEntry& skill, const std::string& uri,
                          std::vector<ResourceContents> contents) {
  if (contents.size() != 1 || contents.front().uri != uri)
    return not_to_be_used(uri, "something else was answered");
  ResourceContents& one = contents.front();
  std::optional<std::string> bytes = one.text ? std::move(one.text) : base64_decode(one.blob.value_or("?"));
  if (!bytes) return not_to_be_used(uri, "it is neither text nor base64");
  return SkillFile{uri.substr(skill.directory().size()), std::move(*bytes), std::move(one.mime_type)};
}

const SkillEntry::File* find(const SkillEntry& skill, std::string_view uri) {
  for (const SkillEntry::File& file : skill.files()) {
    if (file.uri == uri) return &file;
  }
  return nullptr;
}

// What the entry does not vouch for.
std::optional<Error> mismatch(const SkillEntry& skill, const std::string& uri, const SkillFile& read) {
  if (const SkillEntry::File* file = find(skill, uri)) {
    if (file->size != read.content.size())
      return not_to_be_used(uri, "it has " + std::to_string(read.content.size()) + " bytes, and " +
                                     std::to_string(file->size) + " in the entry of its skill");
    if (file->digest != digest_of(read.content))
      return not_to_be_used(uri, "its digest is not that of the entry of its skill");
  }
  if (uri != skill.uri()) return std::nullopt;
  const Result<json::Raw> matter = read_front_matter(read.content);
  if (!matter) return not_to_be_used(uri, matter.error().message());
  if (skill.frontmatter().text().size() > 2 * kMostFrontMatterBytes ||
      !same_value(json::View(*matter), skill.frontmatter()))
    return not_to_be_used(uri, "its front matter is not that of the entry of its skill");
  return std::nullopt;
}

}  // namespace

Task<Result<std::vector<SkillEntry>>> ClientSession::skills() {
  const auto keep = self();
  Task<Result<std::vector<json::Raw>>> listing = list("skills/list", "skills");
  const Result<std::vector<json::Raw>> listed = co_await listing;
  if (!listed) co_return listed.error();
  std::vector<SkillEntry> all;
  Slices slices;
  for (const json::Raw& one : *listed) {
    Result<SkillEntry> entry = SkillEntry::parse(one);
    if (entry) {
      all.push_back(std::move(*entry));
    } else {
      options_.connect.log.warning("a skill is left out", {{"problem", entry.error().message()}});
    }
    if (slices.due(one.text().size())) co_await sleep_for(loop_, Slices::kPause);
  }
  co_return all;
}

Task<Result<SkillEntry>> Client::skill(std::string uri) {
  const auto keep = shared_from_this();
  ToolCallOptions options;
  Task<Result<json::Raw>> asking = request("skills/get", uri_params(uri), std::move(options));
  const Result<json::Raw> answer = co_await asking;
  if (!answer) co_return answer.error();
  Result<SkillEntry> entry = SkillEntry::parse(sub(*answer, json::View(*answer)["skill"]));
  if (entry && entry->uri() != uri) co_return not_to_be_used(uri, "another skill was answered");
  co_return entry;
}

Task<Result<SkillFile>> ClientSession::read_skill_file(SkillEntry skill, std::string uri) {
  const auto keep = self();
  const bool known = skill.dynamic() ? is_in_directory(uri, skill.directory()) : find(skill, uri) != nullptr;
  if (!known) co_return not_to_be_used(uri, "it is not a file of skill " + skill.uri());
  if (uri == skill.uri()) {
    Task<Result<SkillFile>> reading = read_main_file(skill);
    Result<SkillFile> main = co_await reading;
    co_return main;
  }
  const auto checked = checked_skills_.find(skill.uri());
  const bool is_checked =
      checked != checked_skills_.end() && checked->second == digest_of(skill.raw().text());
  if (!is_checked) {
    Task<Result<SkillFile>> reading = read_main_file(skill);
    const Result<SkillFile> main = co_await reading;
    if (!main) co_return main.error();
  }
  Task<Result<SkillFile>> reading = read_checked(skill, std::move(uri));
  Result<SkillFile> file = co_await reading;
  co_return file;
}

// Its SKILL.md, after which the other files may be read for as long as the entry stays what it is.
Task<Result<SkillFile>> ClientSession::read_main_file(SkillEntry skill) {
  checked_skills_.erase(skill.uri());
  Task<Result<SkillFile>> reading = read_checked(skill, skill.uri());
  Result<SkillFile> main = co_await reading;
  if (main) {
    if (checked_skills_.size() >= kMostChecked) checked_skills_.clear();  // they are checked again then
    checked_skills_[skill.uri()] = digest_of(skill.raw().text());
  }
  co_return main;
}

Task<Result<SkillFile>> ClientSession::read_checked(SkillEntry skill, std::string uri) {
  Task<Result<std::vector<ResourceContents>>> reading = read_resource(uri);
  Result<std::vector<ResourceContents>> contents = co_await reading;
  if (!contents) co_return contents.error();
  Result<SkillFile> file = file_of(skill, uri, std::move(*contents));
  if (!file) co_return file;
  if (std::optional<Error> wrong = mismatch(skill, uri, *file)) {
    options_.connect.log.warning("a file of a skill is refused", {{"reason", wrong->message()}});
    co_return *wrong;
  }
  co_return file;
}

Task<Result<std::vector<json::Raw>>> Client::read_directory(std::string uri) {
  const auto keep = shared_from_this();
  std::vector<json::Raw> all;
  json::Raw params = uri_params(uri);
  const ListLimits limits;
  std::size_t bytes = 0;
  for (std::size_t page = 0; page < limits.max_list_pages; ++page) {
    ToolCallOptions options;
    Task<Result<json::Raw>> asking = request("resources/directory/read", params, std::move(options));
    const Result<json::Raw> answer = co_await asking;
    if (!answer) co_return answer.error();
    bytes += answer->text().size();
    if (bytes > limits.max_list_bytes)
      co_return list_over("resources/directory/read", "max_list_bytes", limits.max_list_bytes);
    const json::Members members(json::View(*answer), {"resources", "nextCursor"});
    const json::View entries = members["resources"];
    if (!entries.is(json::Type::array))
      co_return Error(ErrorKind::validation, "resources/directory/read was answered without `resources`");
    Slices slices;
    json::ElementWalk walk(entries.text());
    while (all.size() <= limits.max_list_entries && walk.next()) {
      all.push_back(sub(*answer, json::View(walk.value())));
      if (slices.due(walk.value().size())) co_await sleep_for(connection().loop(), Slices::kPause);
    }
    if (all.size() > limits.max_list_entries)
      co_return list_over("resources/directory/read", "max_list_entries", limits.max_list_entries);
    const json::View next = members["nextCursor"];
    if (!next.is(json::Type::string)) co_return all;
    params = uri_params(uri, next);
  }
  co_return list_over("resources/directory/read", "max_list_pages", limits.max_list_pages);
}

}  // namespace fairlead::mcp
