// Writes tools of a catalogue as items of the meta-tools' results. Private to the layer.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "fairlead/json/writer.hpp"
#include "gateway/catalogue.hpp"
#include "gateway/catalogue_pages.hpp"
#include "gateway/server_table.hpp"

namespace fairlead::gateway {

// Longer descriptions are truncated in lists of tools; get_tool_schema returns them in full.
inline constexpr std::size_t kMaxItemDescriptionBytes = 600;
// A page of browse_tool_domain has this many tools; list_tool_domains names this many domains, and this many
// servers of each.
inline constexpr std::size_t kMaxBrowsedTools = 50;
inline constexpr std::size_t kMaxListedDomains = 200;
inline constexpr std::size_t kMaxDomainServers = 20;

// Writes the members tool_id, server, tool, title and description of an item.
void write_tool_item(json::Writer& out, const CatalogueEntry& tool);
// Returns the complete description of a tool, with the schemas that the server has listed.
json::Raw tool_schema(const CatalogueEntry& tool, bool modern);
// Returns the domains of the servers with tools, in the order of names: the first kMaxListedDomains.
json::Raw tool_domains(const Catalogue& catalogue, const ServerTable& servers, bool modern);
// Returns a page of the tools of a domain.
json::Raw tools_of_domain(const Catalogue& catalogue, const ServerTable& servers, std::string_view domain,
                          const Cursor& from, bool modern);
// Returns whether a server of the catalogue has the domain.
bool has_domain(const Catalogue& catalogue, const ServerTable& servers, std::string_view domain);

}  // namespace fairlead::gateway
