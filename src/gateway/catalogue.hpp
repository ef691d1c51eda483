// Catalogue: what all servers behind a gateway offer at one moment, under the names the gateway gives. Never
// changed once made: a change of one server's lists makes a new one, which is swapped in whole.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fairlead/json/raw.hpp"
#include "fairlead/protocol/revision.hpp"
#include "mcp/uri_template.hpp"

namespace fairlead::gateway {

enum class Kind : std::uint8_t { tools, resources, templates, prompts };
inline constexpr std::array kKinds = {Kind::tools, Kind::resources, Kind::templates, Kind::prompts};
// "tools", "resources", "resourceTemplates", "prompts": the member of a list result.
std::string_view member_of(Kind kind) noexcept;

// What one server last listed, each entry as it sent it. Shared, as most catalogues have most of it in
// common.
struct Listed {
  std::array<std::vector<json::Raw>, kKinds.size()> entries;
  const std::vector<json::Raw>& of(Kind kind) const { return entries[static_cast<std::size_t>(kind)]; }
  std::vector<json::Raw>& of(Kind kind) { return entries[static_cast<std::size_t>(kind)]; }
};
using Lists = std::map<std::string, std::shared_ptr<const Listed>>;  // by server

// One thing offered, and whose it is.
struct Offer {
  std::string server;
  std::string name;  // the server's own: a tool's or prompt's name, a URI, a template
  json::Raw entry;   // as clients see it
  bool modern_only = false;
};

class Catalogue {
 public:
  Catalogue() : Catalogue(Lists()) {}
  // What cannot be offered (no name, a name already taken, not as MCP has it) is left out and told to
  // `problem`.
  explicit Catalogue(const Lists& lists, const std::function<void(std::string)>& problem = nullptr);

  // Tools and prompts by the name offered.
  const Offer* tool(std::string_view offered) const { return find(Kind::tools, offered); }
  const Offer* prompt(std::string_view offered) const { return find(Kind::prompts, offered); }
  // Whose resource this is: one listed, one that fits a template, else, when this is `complete`, that of the
  // only server that has resources at all. Null: nobody's.
  const std::string* server_of_resource(std::string_view uri, bool complete = true) const;

  std::size_t size(Kind kind) const noexcept { return offers_[static_cast<std::size_t>(kind)].size(); }
  // The whole list as a JSON array. The eras differ in what an entry may have.
  const json::Raw& encoded(Kind kind, mcp::Revision revision) const;

 private:
  struct Template {
    mcp::UriTemplate pattern;
    std::string server;
  };

  void take(const std::string& server, const Listed& listed, const std::function<void(std::string)>& problem);
  const Offer* find(Kind kind, std::string_view name) const;
  void encode(Kind kind);

  std::array<std::vector<Offer>, kKinds.size()> offers_;
  std::array<std::map<std::string, std::size_t, std::less<>>, kKinds.size()> by_name_;
  std::vector<Template> templates_;
  std::vector<std::string> resource_servers_;
  std::array<json::Raw, kKinds.size()> legacy_;
  std::array<json::Raw, kKinds.size()> modern_;
};

}  // namespace fairlead::gateway
