// fairlead skills: lists the skills of an MCP server, or reads a file of a skill. The file is verified
// against the entry of the skill, as every host should do.
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

// Returns the skill to which the file `uri` belongs: of the skills whose directory contains the file, the one
// with the longest directory. Null if there is none.
const mcp::SkillEntry* skill_of_file(const std::vector<mcp::SkillEntry>& skills, const std::string& uri) {
  const mcp::SkillEntry* owner = nullptr;
  for (const mcp::SkillEntry& skill : skills) {
    const bool closer = !owner || skill.directory().size() > owner->directory().size();
    if (uri.starts_with(skill.directory()) && closer) owner = &skill;
  }
  return owner;
}

Task<Result<int>> list_or_read(const McpTarget& target, std::string uri, ClientPtr client) {
  target.show_progress("listing skills");
  const Result<std::vector<mcp::SkillEntry>> skills = co_await client->skills();
  if (!skills) co_return skills.error();
  if (uri.empty()) {
    target.hide_progress();
    print_skills(target, *skills);
    co_return kSuccess;
  }
  const mcp::SkillEntry* owner = skill_of_file(*skills, uri);
  if (!owner) co_return Error(ErrorKind::validation, uri + " belongs to no skill of this server");
  const Result<mcp::SkillFile> file = co_await client->read_skill_file(*owner, uri);
  if (!file) co_return file.error();
  target.hide_progress();
  print_text(file->content);
  co_return kSuccess;
}

struct SkillsCommand {
  McpTarget target;
  std::string uri;
};

}  // namespace

void add_skills(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand(
      "skills", "List an MCP server's skills, or read a file of one, verified against its entry");
  auto options = std::make_shared<SkillsCommand>();
  options->target.add_to(*command);
  command->add_option("URI", options->uri, "File to read: skill://…/SKILL.md or another file of the skill");
  command->callback([options, &status] {
    status = run_with_client(options->target, [&](ClientPtr client) {
      return list_or_read(options->target, options->uri, std::move(client));
    });
  });
}

}  // namespace fairlead::cli
