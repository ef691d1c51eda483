#include "gateway/catalogue.hpp"

#include <algorithm>

#include "fairlead/json/splice.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"
#include "gateway/entry_rules.hpp"
#include "gateway/names.hpp"

namespace fairlead::gateway {

namespace {

constexpr std::size_t index(Kind kind) noexcept {
  return static_cast<std::size_t>(kind);
}

std::string_view key_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::tools:
    case Kind::prompts: return "name";
    case Kind::resources: return "uri";
    case Kind::templates: break;
  }
  return "uriTemplate";
}

// Only tools and prompts are renamed: a URI is an address, and links in results must lead there.
bool renamed(Kind kind) noexcept {
  return kind == Kind::tools || kind == Kind::prompts;
}

json::Raw with_name(const json::Raw& entry, json::View name, std::string_view offered) {
  return json::Raw::trusted(
      json::Splice(entry.bytes()).replace(name.text(), json::string(offered).bytes()).joined(),
      entry.one_line());
}

json::Raw without(const json::Raw& entry, json::View member) {
  if (member.absent()) return entry;
  return json::Raw::trusted(json::Splice(entry.bytes()).remove_member(member.text()).joined(),
                            entry.one_line());
}

json::Raw for_era(Kind kind, const json::Raw& entry, bool modern) {
  if (kind != Kind::tools) return entry;
  const json::View view(entry);
  if (modern) return without(entry, view["execution"]);
  // Up to 2025-11-25 structured content is an object.
  const json::View output = view["outputSchema"];
  return output["type"].as_string() == "object" ? entry : without(entry, output);
}

}  // namespace

std::string_view member_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::tools: return "tools";
    case Kind::resources: return "resources";
    case Kind::templates: return "resourceTemplates";
    case Kind::prompts: break;
  }
  return "prompts";
}

Catalogue::Catalogue(const Lists& lists, const std::function<void(std::string)>& problem) {
  for (const auto& [server, listed] : lists) take(server, *listed, problem);
  for (const Kind kind : kKinds) encode(kind);
}

void Catalogue::take(const std::string& server, const Listed& listed,
                     const std::function<void(std::string)>& problem) {
  const auto leave_out = [&](Kind kind, const std::string& why) {
    if (problem) problem(server + ": one of its " + std::string(member_of(kind)) + " is left out: " + why);
  };
  for (const Kind kind : kKinds) {
    for (const json::Raw& entry : listed.of(kind)) {
      const json::View name = json::View(entry)[key_of(kind)];
      const std::optional<std::string> own = name.as_string();
      if (!own || own->empty()) {
        leave_out(kind, "it has no " + std::string(key_of(kind)));
        continue;
      }
      if (const auto why = entry_problem(kind, json::View(entry), true)) {
        leave_out(kind, *why + " (`" + *own + "`)");
        continue;
      }
      const std::string offered = renamed(kind) ? offered_name(server, *own) : *own;
      if (!by_name_[index(kind)].emplace(offered, offers_[index(kind)].size()).second) {
        leave_out(kind, "`" + offered + "` is taken");
        continue;
      }
      const auto narrower = entry_problem(kind, json::View(entry), false);
      if (narrower) leave_out(kind, "for clients before 2026-07-28 " + *narrower + " (`" + *own + "`)");
      offers_[index(kind)].push_back(
          Offer{server, *own, renamed(kind) ? with_name(entry, name, offered) : entry, narrower.has_value()});
      if (kind == Kind::templates) {
        Result<mcp::UriTemplate> pattern = mcp::UriTemplate::parse(*own);
        if (pattern) templates_.push_back(Template{std::move(*pattern), server});
      }
    }
  }
  if (!listed.of(Kind::resources).empty() || !listed.of(Kind::templates).empty())
    resource_servers_.push_back(server);
}

const Offer* Catalogue::find(Kind kind, std::string_view name) const {
  const auto found = by_name_[index(kind)].find(name);
  return found == by_name_[index(kind)].end() ? nullptr : &offers_[index(kind)][found->second];
}

const std::string* Catalogue::server_of_resource(std::string_view uri, bool complete) const {
  if (const Offer* listed = find(Kind::resources, uri)) return &listed->server;
  if (const Offer* listed = find(Kind::templates, uri)) return &listed->server;
  const auto fits = std::ranges::find_if(
      templates_, [&](const Template& one) { return one.pattern.match(uri).has_value(); });
  if (fits != templates_.end()) return &fits->server;
  return complete && resource_servers_.size() == 1 ? &resource_servers_.front() : nullptr;
}

void Catalogue::encode(Kind kind) {
  for (const bool modern : {false, true}) {
    json::Writer out;
    out.begin_array();
    for (const Offer& offer : offers_[index(kind)]) {
      if (modern || !offer.modern_only) out.raw(for_era(kind, offer.entry, modern));
    }
    out.end_array();
    (modern ? modern_ : legacy_)[index(kind)] = out.finish();
  }
}

const json::Raw& Catalogue::encoded(Kind kind, mcp::Revision revision) const {
  return (mcp::is_modern(revision) ? modern_ : legacy_)[index(kind)];
}

}  // namespace fairlead::gateway
