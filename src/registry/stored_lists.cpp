#include "registry/stored_lists.hpp"

#include <algorithm>
#include <utility>

#include "fairlead/json/scanner.hpp"
#include "fairlead/json/writer.hpp"
#include "registry/canonical.hpp"

namespace fairlead::registry {

const std::array<ListMember, 4> kListMembers = {
    ListMember{"tool", "name", "tools", &StoredLists::tools, &FetchedEntries::tools, 1, true},
    ListMember{"resource", "uri", "resources", &StoredLists::resources, &FetchedEntries::resources, 2, false},
    ListMember{"template", "uriTemplate", "templates", &StoredLists::templates, &FetchedEntries::templates, 4,
               false},
    ListMember{"prompt", "name", "prompts", &StoredLists::prompts, &FetchedEntries::prompts, 8, true},
};

const ListMember* find_list(std::string_view kind) noexcept {
  for (const ListMember& list : kListMembers) {
    if (list.kind == kind) return &list;
  }
  return nullptr;
}

std::optional<std::string> entry_name(const ListMember& list, json::View entry) {
  return entry[list.key].as_string();
}

namespace {

std::int64_t to_stored(Time time) {
  return time.time_since_epoch().count();
}
Time from_stored(json::View value) {
  return Time(std::chrono::milliseconds(value.as_int().value_or(0)));
}

// Entries are arrays, because a gateway with many servers keeps many of them in memory.
void write_entry(json::Writer& writer, const ListedEntry& entry) {
  writer.begin_array().raw(entry.entry).integer(to_stored(entry.first_seen));
  if (entry.quarantined) writer.boolean(true);
  writer.end_array();
}

void write_vanished(json::Writer& writer, const VanishedEntry& vanished) {
  writer.begin_array().string(vanished.kind).raw(vanished.last.entry);
  writer.integer(to_stored(vanished.last.first_seen)).integer(to_stored(vanished.last.last_seen));
  if (vanished.last.quarantined) writer.boolean(true);
  writer.end_array();
}

// Reads the elements of one array in one pass.
template <std::size_t size>
std::array<json::View, size> elements(json::View array) {
  std::array<json::View, size> found;
  std::size_t count = 0;
  array.each_element([&](json::View element) {
    found[count++] = element;
    return count < size;
  });
  return found;
}

void read_entries(const Bytes& document, json::View list, Time fetched_at,
                  std::vector<ListedEntry>& entries) {
  list.each_element([&](json::View stored) {
    const auto [entry, first_seen, quarantined] = elements<3>(stored);
    if (!entry.is(json::Type::object)) return true;
    ListedEntry& read = entries.emplace_back();
    read.entry = json::Raw::trusted(document.part(entry.text()));
    read.first_seen = from_stored(first_seen);
    read.last_seen = fetched_at;
    read.quarantined = !quarantined.absent();
    return true;
  });
  entries.shrink_to_fit();
}

void read_vanished(const Bytes& document, json::View list, std::vector<VanishedEntry>& entries) {
  list.each_element([&](json::View stored) {
    const auto [kind, entry, first_seen, last_seen, quarantined] = elements<5>(stored);
    if (!entry.is(json::Type::object)) return true;
    VanishedEntry& read = entries.emplace_back();
    read.kind = kind.as_string().value_or(std::string());
    read.last.entry = json::Raw::trusted(document.part(entry.text()));
    read.last.first_seen = from_stored(first_seen);
    read.last.last_seen = from_stored(last_seen);
    read.last.quarantined = !quarantined.absent();
    return true;
  });
}

}  // namespace

std::string encode_lists(const StoredLists& lists) {
  json::Writer writer;
  writer.begin_object();
  for (const ListMember& list : kListMembers) {
    if ((lists.kinds_listed & list.bit) == 0) continue;
    writer.key(list.name).begin_array();
    for (const ListedEntry& entry : lists.*list.stored) write_entry(writer, entry);
    writer.end_array();
  }
  if (!lists.vanished.empty()) {
    writer.key("vanished").begin_array();
    for (const VanishedEntry& vanished : lists.vanished) write_vanished(writer, vanished);
    writer.end_array();
  }
  writer.end_object();
  return std::string(writer.finish().text());
}

Result<StoredLists> decode_lists(std::string document, Time fetched_at) {
  // A document may have been changed by hand.
  if (const std::optional<Error> error = json::validate(document)) return *error;
  document.shrink_to_fit();
  const Bytes bytes = Bytes::adopt(std::move(document));
  StoredLists lists;
  lists.fetched_at = fetched_at;
  json::View(bytes.view()).each_member([&](std::string_view key, bool, json::View value) {
    if (key == "vanished") read_vanished(bytes, value, lists.vanished);
    for (const ListMember& list : kListMembers) {
      if (key != list.name) continue;
      read_entries(bytes, value, fetched_at, lists.*list.stored);
      lists.kinds_listed = static_cast<std::uint8_t>(lists.kinds_listed | list.bit);
    }
    return true;
  });
  return lists;
}

bool is_unchanged(const StoredLists& stored, const FetchedEntries& fetched) {
  return std::ranges::all_of(kListMembers, [&](const ListMember& list) {
    const auto& entries = fetched.*list.fetched;
    if (!entries) return true;
    return (stored.kinds_listed & list.bit) != 0 &&
           std::ranges::equal(stored.*list.stored, *entries, [](const ListedEntry& a, const json::Raw& b) {
             return a.entry.text() == b.text();
           });
  });
}

StoredLists seen_again(const StoredLists& stored, const FetchedEntries& fetched, Time now) {
  StoredLists lists = stored;
  lists.fetched_at = now;
  for (const ListMember& list : kListMembers) {
    if (!(fetched.*list.fetched)) continue;
    for (ListedEntry& entry : lists.*list.stored) entry.last_seen = now;
  }
  return lists;
}

bool have_same_entries(const StoredLists& a, const StoredLists& b) {
  const auto is_equal = [](const ListedEntry& x, const ListedEntry& y) {
    return x.quarantined == y.quarantined && x.entry.text() == y.entry.text();
  };
  return a.kinds_listed == b.kinds_listed && a.vanished.size() == b.vanished.size() &&
         std::ranges::equal(a.vanished, b.vanished,
                            [&](const VanishedEntry& x, const VanishedEntry& y) {
                              return x.kind == y.kind && is_equal(x.last, y.last);
                            }) &&
         std::ranges::all_of(kListMembers, [&](const ListMember& list) {
           return std::ranges::equal(a.*list.stored, b.*list.stored, is_equal);
         });
}

namespace {

ListedEntry* find_entry(StoredLists& lists, const ListMember& list, std::string_view name) {
  for (ListedEntry& entry : lists.*list.stored) {
    if (entry_name(list, json::View(entry.entry)) == name) return &entry;
  }
  for (VanishedEntry& vanished : lists.vanished) {
    if (vanished.kind == list.kind && entry_name(list, json::View(vanished.last.entry)) == name)
      return &vanished.last;
  }
  return nullptr;
}

// Whether the decision about the entry is that about `drift`: an open row takes precedence over rejected
// ones, and the row that was seen last over earlier ones with the same change.
bool is_decisive(const DriftRows& rows, const Drift& drift) {
  if (drift.status == DriftStatus::open) return true;
  return std::ranges::none_of(rows, [&](const auto& other) {
    const Drift& row = *other.second;
    if (row.id == drift.id || row.kind != drift.kind || row.name != drift.name) return false;
    if (row.status == DriftStatus::open) return true;
    return row.status == DriftStatus::rejected && row.detected_at >= drift.detected_at &&
           same_entry(row.kind, json::View(row.after), json::View(drift.after));
  });
}

}  // namespace

Result<void> apply_resolution(StoredLists& lists, const DriftRows& rows, const Drift& drift,
                              DriftStatus resolution) {
  const auto refuse = [](std::string message) {
    return Error(ErrorKind::validation, std::move(message)).with([](ErrorDetail& detail) {
      detail.failure_code = kInvalidRow;
    });
  };
  const ListMember* const list = find_list(drift.kind);
  ListedEntry* const entry = list ? find_entry(lists, *list, drift.name) : nullptr;
  if (!entry || !same_entry(drift.kind, json::View(entry->entry), json::View(drift.after)))
    return refuse("the server no longer lists the " + drift.kind + " as this change has it");
  if (!is_decisive(rows, drift))
    return refuse("there is a later change of this " + drift.kind + "; resolve that one");
  entry->quarantined = resolution == DriftStatus::rejected;
  return {};
}

}  // namespace fairlead::registry
