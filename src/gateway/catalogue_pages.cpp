#include "gateway/catalogue_pages.hpp"

#include <algorithm>
#include <charconv>
#include <deque>

#include "fairlead/base/base64.hpp"
#include "fairlead/process/failure.hpp"
#include "fairlead/rpc/codes.hpp"
#include "gateway/failure.hpp"
#include "gateway/names.hpp"

namespace fairlead::gateway {

namespace {

constexpr std::size_t kMaxCursorBytes = 256;

// Removes a number and the character `end` after it from the front of `text`. Returns nullopt if `text` does
// not begin with these.
std::optional<std::size_t> consume_number(std::string_view& text, char end) {
  std::size_t number = 0;
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || rest == text.data() + text.size() || *rest != end) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()) + 1);
  return number;
}

// Decodes a cursor: base64url of "kind.position.last_hash.server". Returns nullopt if it is invalid or of a
// list of another kind.
std::optional<Cursor> decode_cursor(ListKind kind, json::View encoded) {
  if (encoded.text().size() > kMaxCursorBytes) return std::nullopt;
  const std::optional<std::string> text = encoded.as_string();
  const std::optional<std::string> plain = text ? base64url_decode(*text) : std::nullopt;
  if (!plain) return std::nullopt;
  std::string_view rest = *plain;
  const std::optional<std::size_t> list = consume_number(rest, '.');
  const std::optional<std::size_t> position = consume_number(rest, '.');
  const std::optional<std::size_t> last = consume_number(rest, '.');
  if (list != static_cast<std::size_t>(kind) || !position || !last || server_name_problem(rest))
    return std::nullopt;
  return Cursor{kind, std::string(rest), *position, *last};
}

// Returns the position in the server's current list at which the page begins; see Cursor.
std::size_t resume_position(const ServerLists& lists, const Cursor& from) {
  const std::deque<CatalogueEntry>& entries = lists.entries(from.kind);
  if (from.position == 0) return 0;
  const bool unmoved = from.position <= entries.size() &&
                       EntryKey(entries[from.position - 1].public_name).hash == from.last_hash;
  if (unmoved) return from.position;
  const std::optional<std::size_t> moved = lists.position_by_hash(from.kind, from.last_hash);
  return moved ? *moved + 1 : from.position;
}

class PageBuilder {
 public:
  PageBuilder(const Catalogue& catalogue, ListKind kind, mcp::Revision revision, const PageLimits& limits)
      : catalogue_(catalogue), kind_(kind), modern_(mcp::is_modern(revision)), limits_(limits) {}

  // Returns false, without adding the entry, if the page is full.
  bool add(const CatalogueEntry& entry) {
    if (kind_ == ListKind::tools && !catalogue_.lists(kind_, entry)) return true;
    const json::Raw& json = modern_ ? entry.modern_json : entry.legacy_json;
    const std::size_t size = json.text().size();
    if (count_ == limits_.max_page_entries || (count_ > 0 && bytes_ + size > limits_.max_page_bytes))
      return false;
    ++count_;
    bytes_ += size;
    if (!json.absent() && (kind_ == ListKind::tools || catalogue_.lists(kind_, entry)))
      entries_.push_back(json);
    return true;
  }
  Page finish(std::string next_cursor) { return Page{std::move(entries_), std::move(next_cursor)}; }

 private:
  const Catalogue& catalogue_;
  ListKind kind_;
  bool modern_;
  const PageLimits& limits_;
  std::vector<json::Raw> entries_;
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
};

// Returns the cursor of a page that begins at `position` in the list of `server`.
Cursor cursor_at(const Catalogue::ListedServer& server, ListKind kind, std::size_t position) {
  const std::deque<CatalogueEntry>& entries = server.lists->entries(kind);
  const std::size_t last = position == 0 ? 0 : EntryKey(entries[position - 1].public_name).hash;
  return Cursor{kind, server.name, position, last};
}

}  // namespace

Result<Cursor> Cursor::parse(ListKind kind, json::View cursor) {
  if (cursor.absent()) return Cursor{kind, {}, 0, 0};
  const std::optional<Cursor> decoded = decode_cursor(kind, cursor);
  if (decoded) return *decoded;
  return refusal_error(rpc::kInvalidParams, "Invalid cursor", failure::invalid_request);
}

std::string Cursor::encode() const {
  return base64url_encode(std::to_string(static_cast<std::size_t>(kind)) + "." + std::to_string(position) +
                          "." + std::to_string(last_hash) + "." + server);
}

Page make_page(const Catalogue& catalogue, const Cursor& from, mcp::Revision revision,
               const PageLimits& limits) {
  PageBuilder page(catalogue, from.kind, revision, limits);
  const auto servers = catalogue.servers();
  for (auto server = std::ranges::lower_bound(servers, from.server, {}, &Catalogue::ListedServer::name);
       server != servers.end(); ++server) {
    const std::deque<CatalogueEntry>& entries = server->lists->entries(from.kind);
    std::size_t at = server->name == from.server ? resume_position(*server->lists, from) : 0;
    for (; at < entries.size(); ++at) {
      if (!page.add(entries[at])) return page.finish(cursor_at(*server, from.kind, at).encode());
    }
  }
  return page.finish({});
}

}  // namespace fairlead::gateway
