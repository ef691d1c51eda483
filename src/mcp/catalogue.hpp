// Catalogue: immutable snapshot of the entries (tools, resources, templates, prompts, skills) of a Server.
// Sessions read a snapshot without a lock; each change replaces the snapshot by a changed copy.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "fairlead/json/schema.hpp"
#include "fairlead/mcp/server.hpp"
#include "fairlead/protocol/header_annotations.hpp"
#include "mcp/uri_template.hpp"

namespace fairlead::mcp {

struct ToolEntry {
  ToolSpec spec;
  Server::PlainTool plain_handler;
  Server::CoroutineTool coroutine_handler;  // instead of `plain_handler`
  std::optional<json::Schema> input_schema;
  std::optional<json::Schema> output_schema;
  HeaderParams header_params;  // arguments that clients send as HTTP headers; null if there are none
};

struct ResourceEntry {
  ResourceSpec spec;
  Server::ReadResource read;
};

struct TemplateEntry {
  ResourceSpec spec;
  UriTemplate pattern;
  Server::ReadResource read;
  Server::Complete complete;
};

struct PromptEntry {
  PromptSpec spec;
  Server::GetPrompt get;
  Server::Complete complete;
};

// A file of a registered skill. It can be read whether it is listed as a resource or not.
struct RegisteredSkillFile {
  ResourceSpec spec;
  std::string content;
  bool is_text = false;
};

// A registered skill; `uri` is that of its SKILL.md.
struct RegisteredSkill {
  std::string uri;
  ResourceSpec resource;  // the entry of SKILL.md in resources/list
  json::Raw entry_json;   // the entry of the skill in skills/list, as JSON
  std::vector<std::shared_ptr<const RegisteredSkillFile>> files;
};

// The entries of one kind, in the order of their registration and by name.
template <class Entry>
struct EntryTable {
  std::vector<std::shared_ptr<const Entry>> entries;
  std::map<std::string, std::shared_ptr<const Entry>, std::less<>> by_name;

  // Returns nullptr if there is none.
  const Entry* find(std::string_view name) const {
    const auto found = by_name.find(name);
    return found == by_name.end() ? nullptr : found->second.get();
  }
  // Returns false if an entry of this name exists.
  bool add(const std::string& name, Entry entry) {
    auto shared = std::make_shared<const Entry>(std::move(entry));
    if (!by_name.emplace(name, shared).second) return false;
    entries.push_back(std::move(shared));
    return true;
  }
  // Returns false if there is none.
  bool remove(const std::string& name) {
    const auto found = by_name.find(name);
    if (found == by_name.end()) return false;
    std::erase(entries, found->second);
    by_name.erase(found);
    return true;
  }
};

// The lists of a Catalogue. A change of the skills is a change of `resources`, since skills are resources.
enum class ListKind : std::uint8_t { tools, resources, templates, prompts };

class Catalogue {
 public:
  Catalogue() = default;
  Catalogue(const Catalogue& other)
      : tools(other.tools),
        resources(other.resources),
        templates(other.templates),
        prompts(other.prompts),
        skills(other.skills),
        skill_files(other.skill_files) {}

  EntryTable<ToolEntry> tools;
  EntryTable<ResourceEntry> resources;
  EntryTable<TemplateEntry> templates;
  EntryTable<PromptEntry> prompts;
  EntryTable<RegisteredSkill> skills;
  std::map<std::string, std::shared_ptr<const RegisteredSkillFile>, std::less<>>
      skill_files;  // of all skills, by URI

  // Returns the number of entries of a list.
  std::size_t size(ListKind kind) const noexcept;
  // Returns the page of at most `count` entries that starts at index `from`, as a JSON array. Each page is
  // encoded once per revision and then cached. Thread-safe.
  json::Raw page_json(ListKind kind, Revision revision, std::size_t from, std::size_t count) const;

 private:
  json::Raw encode_page(ListKind kind, Revision revision, std::size_t from, std::size_t count) const;

  mutable std::mutex mutex_;
  mutable std::map<std::tuple<ListKind, Revision, std::size_t, std::size_t>, json::Raw> page_cache_;
};

}  // namespace fairlead::mcp
