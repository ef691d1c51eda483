#include "gateway/catalogue.hpp"

#include <algorithm>

#include "fairlead/json/writer.hpp"
#include "fairlead/process/failure.hpp"
#include "fairlead/rpc/codes.hpp"
#include "gateway/failure.hpp"

namespace fairlead::gateway {

namespace {

constexpr std::size_t index(Kind kind) noexcept {
  return static_cast<std::size_t>(kind);
}

std::string limit_text(std::string_view name, std::size_t value) {
  return std::string(name) + " (" + std::to_string(value) + ")";
}

}  // namespace

Catalogue::Catalogue(const Lists& lists, const Problem& problem, const mcp::ListLimits& limits)
    : limits_(limits) {
  for (const auto& [server, listed] : lists) {
    lists_.push_back(listed);
    add(server, *listed, problem);
  }
  for (const Kind kind : kKinds) encode(kind);
}

void Catalogue::add(const std::string& server, const Listed& listed, const Problem& problem) {
  for (const Kind kind : kKinds) {
    std::vector<const Offer*> added;
    for (const Offer& offer : listed.offers_of(kind)) {
      if (by_name_[index(kind)].emplace(offer.offered, &offer).second) {
        added.push_back(&offer);
      } else if (problem) {
        problem(left_out(server, kind, "`" + offer.offered + "` is taken"));
      }
    }
    offers_[index(kind)].insert(offers_[index(kind)].end(), added.begin(), added.end());
    if (kind == Kind::templates && !added.empty()) templates_.push_back(std::move(added));
  }
  if (problem) std::ranges::for_each(listed.problems, problem);
  if (!listed.of(Kind::resources).empty() || !listed.of(Kind::templates).empty())
    resource_servers_.push_back(server);
}

const Offer* Catalogue::find(Kind kind, std::string_view name) const {
  const auto found = by_name_[index(kind)].find(name);
  return found == by_name_[index(kind)].end() ? nullptr : found->second;
}

Result<const std::string*> Catalogue::server_of_resource(std::string_view uri, bool complete) const {
  if (uri.size() > limits_.max_uri_bytes)
    return refusal_of(rpc::kInvalidParams,
                      "uri is over the limit " + limit_text("max_uri_bytes", limits_.max_uri_bytes),
                      failure::invalid_request);
  if (const Offer* listed = find(Kind::resources, uri)) return &listed->server;
  if (const Offer* listed = find(Kind::templates, uri)) return &listed->server;
  const std::string* over_limit = nullptr;
  for (const std::vector<const Offer*>& templates : templates_) {
    const std::string& server = templates.front()->server;
    mcp::MatchBudget budget(limits_.max_template_steps / templates_.size());
    const bool fits =
        std::ranges::any_of(templates, [&](const Offer* offer) { return offer->pattern->fits(uri, budget); });
    if (fits) return &server;
    if (budget.exhausted()) over_limit = &server;
  }
  if (complete && resource_servers_.size() == 1) return &resource_servers_.front();
  if (over_limit)
    return refusal_of(rpc::kInvalidParams,
                      "Resource not found: comparing the uri with all templates of server `" + *over_limit +
                          "` takes more than its share of " +
                          limit_text("max_template_steps", limits_.max_template_steps),
                      failure::resource_exhausted);
  return nullptr;
}

void Catalogue::encode(Kind kind) {
  for (const bool modern : {false, true}) {
    json::Writer out;
    out.begin_array();
    for (const Offer* const offer : offers_[index(kind)]) {
      const json::Raw& entry = modern ? offer->entry : offer->legacy;
      if (!entry.absent()) out.raw(entry);
    }
    out.end_array();
    (modern ? modern_ : legacy_)[index(kind)] = out.finish();
  }
}

const json::Raw& Catalogue::encoded(Kind kind, mcp::Revision revision) const {
  return (mcp::is_modern(revision) ? modern_ : legacy_)[index(kind)];
}

}  // namespace fairlead::gateway
