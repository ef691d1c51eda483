#include "gateway/missing_lists.hpp"

#include "fairlead/gateway/gateway.hpp"
#include "fairlead/json/writer.hpp"
#include "gateway/listing.hpp"

namespace fairlead::gateway {

namespace {

// Why the catalogue lacks a server's list of this kind; nullopt if it does not.
std::optional<std::string> missing_reason(const ServerEntry& entry, Kind kind, const Catalogue& catalogue) {
  if (!entry.enabled) return std::nullopt;
  if (const Catalogue::Part* const part = catalogue.part_of(entry.name())) {
    const std::string& why = part->listed->missing(kind);
    return why.empty() ? std::nullopt : std::optional(why);
  }
  return entry.listing.problem.empty() ? "has not listed yet" : entry.listing.problem;
}

}  // namespace

json::Raw MissingLists::meta(Kind kind, const Catalogue& catalogue) {
  std::string reasons;
  json::Writer meta;
  meta.begin_object().key(kIncompleteKey).begin_array();
  for (const auto& entry : servers_->all()) {
    const std::optional<std::string> why = missing_reason(*entry, kind, catalogue);
    if (!why) continue;
    meta.string(entry->name());
    reasons += (reasons.empty() ? "" : "; ") + entry->name() + ": " + *why;
  }
  meta.end_array().end_object();
  std::string& logged = logged_[static_cast<std::size_t>(kind)];
  if (!reasons.empty() && reasons != logged)
    log_.warning("list is incomplete", {{"method", list_method(kind)}, {"missing", reasons}});
  logged = std::move(reasons);
  return logged.empty() ? json::Raw() : meta.finish();
}

}  // namespace fairlead::gateway
