// fairlead skills: the skills of an MCP server, and what is in them, read the way a host should: checked.
#include <CLI/CLI.hpp>

#include "cli/mcp_target.hpp"

namespace fairlead::cli {

namespace {

using ClientPtr = std::shared_ptr<mcp::Client>;

void print_skills(const McpTarget& target, const std::vector<mcp::SkillEntry>& skills) {
  if (target.json) {
    std::vector<json::Raw> entries;
    for (const mcp::SkillEntry& skill : skills) entries.push_back(skill.raw());
    return print_json_array(entries);
  }
  std::vector<std::vector<std::string>> rows;
  for (const mcp::SkillEntry& skill : skills) {
    rows.push_back({skill.uri(), summary(skill.description())});
  }
  print_table(rows);
}

// The skill a file belongs to: that with the longest directory it is in.
const mcp::SkillEntry* owner_of(const std::vector<mcp::SkillEntry>& skills, const std::string& uri) {
  const mcp::SkillEntry* owner = nullptr;
  for (const mcp::SkillEntry& skill : skills) {
    const bool closer = !owner || skill.directory().size() > owner->directory().size();
    if (uri.starts_with(skill.directory()) && closer) owner = &skill;
  }
  return owner;
}

Task<Result<int>> show(const McpTarget& target, std::string uri, ClientPtr client) {
  Task<Result<std::vector<mcp::SkillEntry>>> listing = client->skills();
  const Result<std::vector<mcp::SkillEntry>> skills = co_await listing;
  if (!skills) co_return skills.error();
  if (uri.empty()) {
    print_skills(target, *skills);
    co_return kDone;
  }
  const mcp::SkillEntry* owner = owner_of(*skills, uri);
  if (!owner) co_return Error(ErrorKind::validation, uri + " belongs to no skill of this server");
  Task<Result<mcp::SkillFile>> reading = client->read_skill_file(*owner, uri);
  const Result<mcp::SkillFile> file = co_await reading;
  if (!file) co_return file.error();
  print_text(file->content);
  co_return kDone;
}

struct SkillsCommand {
  McpTarget target;
  std::string uri;
};

}  // namespace

void add_skills(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand(
      "skills", "List an MCP server's skills, or read a file of one, checked against its entry");
  auto options = std::make_shared<SkillsCommand>();
  options->target.add_to(*command);
  command->add_option("URI", options->uri, "File to read: skill://…/SKILL.md or another one of the skill");
  command->callback([options, &status] {
    status = with_client(options->target, [&](ClientPtr client) {
      return show(options->target, options->uri, std::move(client));
    });
  });
}

}  // namespace fairlead::cli
