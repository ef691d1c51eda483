// Catalogue: what a server offers at one moment, never changed once made. Sessions read it without a lock; a
// change makes a new one.
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
  Server::PlainTool plain;
  Server::CoroutineTool coroutine;  // instead of `plain`
  std::optional<json::Schema> input;
  std::optional<json::Schema> output;
  HeaderParams header_params;  // null: none of its arguments travels as a header
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

// A file that can be read, whether it is listed or not.
struct OfferedFile {
  ResourceSpec spec;
  std::string content;
  bool is_text = false;
};

// A skill, by the address of its SKILL.md.
struct OfferedSkill {
  std::string uri;
  ResourceSpec listed;  // its SKILL.md among the resources
  json::Raw entry;      // as skills/list has it
  std::vector<std::shared_ptr<const OfferedFile>> files;
};

// Entries in the order they were added, and by name.
template <class Entry>
struct Listing {
  std::vector<std::shared_ptr<const Entry>> entries;
  std::map<std::string, std::shared_ptr<const Entry>, std::less<>> by_name;

  const Entry* find(std::string_view name) const {
    const auto found = by_name.find(name);
    return found == by_name.end() ? nullptr : found->second.get();
  }
  bool add(const std::string& name, Entry entry) {
    auto shared = std::make_shared<const Entry>(std::move(entry));
    if (!by_name.emplace(name, shared).second) return false;
    entries.push_back(std::move(shared));
    return true;
  }
  bool remove(const std::string& name) {
    const auto found = by_name.find(name);
    if (found == by_name.end()) return false;
    std::erase(entries, found->second);
    by_name.erase(found);
    return true;
  }
};

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
        files(other.files) {}

  Listing<ToolEntry> tools;
  Listing<ResourceEntry> resources;
  Listing<TemplateEntry> templates;
  Listing<PromptEntry> prompts;
  Listing<OfferedSkill> skills;
  std::map<std::string, std::shared_ptr<const OfferedFile>, std::less<>> files;  // of all skills, by address

  std::size_t size(ListKind kind) const noexcept;
  // The entries from `from` on, `count` of them, as a JSON array; encoded once for each revision.
  json::Raw encoded(ListKind kind, Revision revision, std::size_t from, std::size_t count) const;

 private:
  json::Raw encode(ListKind kind, Revision revision, std::size_t from, std::size_t count) const;

  mutable std::mutex mutex_;
  mutable std::map<std::tuple<ListKind, Revision, std::size_t, std::size_t>, json::Raw> encoded_;
};

}  // namespace fairlead::mcp
