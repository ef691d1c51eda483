#include "gateway/missing_lists.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/printable.hpp"
#include "fairlead/base/limits.hpp"
#include "fairlead/gateway/gateway.hpp"
#include "fairlead/json/writer.hpp"
#include "gateway/listing.hpp"

namespace fairlead::gateway {

namespace {

// Why a server's list of this kind is missing from its part of the catalogue, which is null if it has none;
// nullopt if the list is not missing.
std::optional<std::string_view> missing_reason(const ServerEntry& entry, Kind kind,
                                               const Catalogue::Part* part) {
  if (!entry.enabled) return std::nullopt;
  if (part) {
    const std::string& why = part->listed->missing(kind);
    return why.empty() ? std::nullopt : std::optional<std::string_view>(why);
  }
  return entry.listing.problem.empty() ? "has not listed yet" : std::string_view(entry.listing.problem);
}

void add_reason(std::string& reasons, const std::string& server, std::string_view why) {
  if (reasons.size() >= Limits::kMaxLogFieldBytes) return;
  reasons += (reasons.empty() ? "" : "; ") + server + ": " + shortened(why, Limits::kMaxLogFieldBytes);
}

// Finds parts of a catalogue by name, in the order of names: cheaper than a search for each.
class PartCursor {
 public:
  explicit PartCursor(std::span<const Catalogue::Part> parts) : rest_(parts) {}
  // Null if the server has none. REQUIRES: `server` is after that of the call before.
  const Catalogue::Part* find(std::string_view server) {
    while (!rest_.empty() && rest_.front().server < server) rest_ = rest_.subspan(1);
    return !rest_.empty() && rest_.front().server == server ? &rest_.front() : nullptr;
  }

 private:
  std::span<const Catalogue::Part> rest_;
};

}  // namespace

json::Raw MissingLists::meta(Kind kind, const Catalogue& catalogue) {
  std::string reasons;
  std::size_t missing = 0;
  json::Writer meta;
  meta.begin_object().key(kIncompleteKey).begin_array();
  PartCursor parts(catalogue.parts());
  for (const auto& [name, entry] : servers_->by_name()) {
    const std::optional<std::string_view> why = missing_reason(*entry, kind, parts.find(name));
    if (!why || ++missing > kMaxNamedMissing) continue;
    meta.string(name);
    add_reason(reasons, name, *why);
  }
  meta.end_array();
  const std::size_t others = missing - std::min(missing, kMaxNamedMissing);
  if (others > 0) meta.key(kIncompleteOthersKey).unsigned_integer(others);
  meta.end_object();
  log_change(kind, std::move(reasons), others);
  return missing > 0 ? meta.finish() : json::Raw();
}

void MissingLists::log_change(Kind kind, std::string reasons, std::size_t others) {
  Logged& logged = logged_[static_cast<std::size_t>(kind)];
  if (!reasons.empty() && (reasons != logged.reasons || others != logged.others))
    log_.warning("list is incomplete",
                 {{"method", list_method(kind)}, {"missing", reasons}, {"others", others}});
  logged = Logged{std::move(reasons), others};
}

}  // namespace fairlead::gateway
