// Offer: an entry of a server's list, checked once and made ready for clients when it is listed. Listed: all
// offers of one server.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fairlead/json/raw.hpp"
#include "fairlead/protocol/header_annotations.hpp"
#include "fairlead/protocol/list_limits.hpp"
#include "mcp/uri_template.hpp"

namespace fairlead::gateway {

enum class Kind : std::uint8_t { tools, resources, templates, prompts };
inline constexpr std::array kKinds = {Kind::tools, Kind::resources, Kind::templates, Kind::prompts};
// "tools", "resources", "resourceTemplates", "prompts": the member of a list result.
std::string_view member_of(Kind kind) noexcept;

// One thing offered, and whose it is.
struct Offer {
  std::string server;
  std::string name;                         // the server's own: a tool's or prompt's name, a URI, a template
  std::string offered;                      // the name that clients use
  json::Raw entry;                          // as clients see it
  json::Raw legacy;                         // as clients before 2026-07-28 see it; absent: they do not
  std::optional<mcp::UriTemplate> pattern;  // of a template
  mcp::HeaderParams header_params;          // of a tool
};

// What one server last listed. Never changed once it is part of a catalogue, and shared by those that have it
// in common.
struct Listed {
  std::array<std::vector<json::Raw>, kKinds.size()> entries;  // as it sent them
  std::array<std::vector<Offer>, kKinds.size()> offers;       // what can be offered of them
  std::vector<std::string> problems;                          // why the others are left out

  const std::vector<json::Raw>& of(Kind kind) const { return entries[static_cast<std::size_t>(kind)]; }
  std::vector<json::Raw>& of(Kind kind) { return entries[static_cast<std::size_t>(kind)]; }
  const std::vector<Offer>& offers_of(Kind kind) const { return offers[static_cast<std::size_t>(kind)]; }

  // Adds the offer for an entry of `server`. What cannot be offered (no name, not as MCP has it, over a
  // limit) becomes a problem. Called for each entry, in order.
  void add_offer(const std::string& server, Kind kind, const json::Raw& entry, const mcp::ListLimits& limits);
};

// "`server`: one of its tools is left out: `why`".
std::string left_out(const std::string& server, Kind kind, const std::string& why);

}  // namespace fairlead::gateway
