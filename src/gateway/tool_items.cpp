#include "gateway/tool_items.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "gateway/tool_search.hpp"
#include "json/members.hpp"

namespace fairlead::gateway {
namespace {

std::string truncated(std::string text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  std::size_t end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  text.resize(end);
  return text + "…";
}

void write_server(json::Writer& out, const std::string& name, const ServerPolicy& policy) {
  out.begin_object().key("name").string(name);
  if (!policy.title.empty()) out.key("title").string(policy.title);
  if (!policy.description.empty())
    out.key("description").string(truncated(policy.description, kMaxItemDescriptionBytes));
  out.end_object();
}

struct DomainSummary {
  std::vector<std::string> servers;  // at most kMaxDomainServers
  std::size_t server_count = 0;
  std::size_t tool_count = 0;
};

using DomainSummaries = std::map<std::string, DomainSummary, std::less<>>;

DomainSummaries summarize_domains(const Catalogue& catalogue, const ServerTable& servers, bool modern) {
  DomainSummaries domains;
  for (const Catalogue::ListedServer& server : catalogue.servers()) {
    const auto& tools = server.lists->entries(ListKind::tools);
    const auto count = std::ranges::count_if(
        tools, [modern](const CatalogueEntry& tool) { return is_discoverable(tool, modern); });
    if (count == 0) continue;
    DomainSummary& domain = domains[std::string(domain_of(*policy_of(servers, server.name)))];
    domain.tool_count += static_cast<std::size_t>(count);
    if (domain.server_count++ < kMaxDomainServers) domain.servers.push_back(server.name);
  }
  return domains;
}

// Returns the position in the list of the server where the page begins.
std::size_t first_position(const ServerLists& lists, const Cursor& from) {
  const std::optional<std::size_t> last = lists.position_by_hash(ListKind::tools, from.last_hash);
  return last ? *last + 1 : from.position;
}

}  // namespace

void write_tool_item(json::Writer& out, const CatalogueEntry& tool) {
  const json::Members members(json::View(tool.modern_json), {"title", "description"});
  out.key("tool_id").string(tool.public_name).key("server").string(tool.server).key("tool").string(tool.name);
  if (const std::optional<std::string> title = members["title"].as_string())
    out.key("title").string(truncated(*title, kMaxItemDescriptionBytes));
  out.key("description")
      .string(truncated(members["description"].as_string().value_or(""), kMaxItemDescriptionBytes));
}

json::Raw tool_schema(const CatalogueEntry& tool, bool modern) {
  const json::Members members(json::View(modern ? tool.modern_json : tool.legacy_json),
                              {"title", "description", "inputSchema", "outputSchema", "annotations"});
  json::Writer out;
  out.begin_object();
  out.key("tool_id").string(tool.public_name).key("server").string(tool.server).key("tool").string(tool.name);
  for (const std::string_view name : {"title", "description", "inputSchema", "outputSchema", "annotations"}) {
    if (!members[name].absent()) out.key(name).raw(members[name].text());
  }
  out.end_object();
  return out.finish();
}

json::Raw tool_domains(const Catalogue& catalogue, const ServerTable& servers, bool modern) {
  json::Writer out;
  out.begin_object().key("items").begin_array();
  const DomainSummaries domains = summarize_domains(catalogue, servers, modern);
  std::size_t count = 0;
  for (const auto& [name, domain] : domains) {
    if (++count > kMaxListedDomains) break;
    out.begin_object().key("domain_id").string(name).key("servers").begin_array();
    for (const std::string& server : domain.servers) write_server(out, server, *policy_of(servers, server));
    out.end_array();
    out.key("server_count").unsigned_integer(domain.server_count);
    out.key("tool_count").unsigned_integer(domain.tool_count).end_object();
  }
  out.end_array().key("more").boolean(count > kMaxListedDomains);
  if (count > kMaxListedDomains) {
    out.key("note").string(
        "Further domains are not listed. discover_tools finds tools of all domains, and "
        "browse_tool_domain lists those of any domain.");
  }
  out.end_object();
  return out.finish();
}

json::Raw tools_of_domain(const Catalogue& catalogue, const ServerTable& servers, std::string_view domain,
                          const Cursor& from, bool modern) {
  json::Writer out;
  out.begin_object().key("items").begin_array();
  std::size_t count = 0;
  Cursor next;
  for (const Catalogue::ListedServer& server : catalogue.servers()) {
    if (server.name < from.server || domain_of(*policy_of(servers, server.name)) != domain) continue;
    const auto& tools = server.lists->entries(ListKind::tools);
    std::size_t i = server.name == from.server ? first_position(*server.lists, from) : 0;
    for (; i < tools.size() && count <= kMaxBrowsedTools; ++i) {
      if (!is_discoverable(tools[i], modern)) continue;
      if (++count > kMaxBrowsedTools) break;
      out.begin_object();
      write_tool_item(out, tools[i]);
      out.end_object();
      next = Cursor{ListKind::tools, server.name, i + 1, EntryKey(tools[i].public_name).hash};
    }
    if (count > kMaxBrowsedTools) break;
  }
  out.end_array();
  if (count > kMaxBrowsedTools) out.key("nextCursor").string(next.encode());
  out.end_object();
  return out.finish();
}

bool has_domain(const Catalogue& catalogue, const ServerTable& servers, std::string_view domain) {
  return std::ranges::any_of(catalogue.servers(), [&](const Catalogue::ListedServer& server) {
    return domain_of(*policy_of(servers, server.name)) == domain;
  });
}

}  // namespace fairlead::gateway
