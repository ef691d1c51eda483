// Cursor, Page, make_page(): pagination of the lists that clients request. A page shares the JSON text of the
// catalogue entries, which was encoded when the lists were fetched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fairlead/base/result.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/protocol/revision.hpp"
#include "gateway/catalogue.hpp"

namespace fairlead::gateway {

struct PageLimits {
  std::size_t max_page_entries = 1000;
  std::size_t max_page_bytes = 1u << 20;  // a larger entry gets a page of its own
};

// Where the next page begins: after the first `position` entries of `server`. `last_hash` is the hash of the
// public name of the last of these entries. A cursor stays valid when the lists change: if that entry has
// moved, the page begins after it; if the entry is gone, at the same position; if the server is gone, with
// the next server in the order of names.
struct Cursor {
  ListKind kind = ListKind::tools;
  std::string server;
  std::size_t position = 0;
  std::size_t last_hash = 0;

  // Parses the `cursor` of a list request. Returns the start of the list if it is absent. Fails with -32602
  // if it is not a cursor of a list of this kind.
  static Result<Cursor> parse(ListKind kind, json::View cursor);
  std::string encode() const;
  // Returns whether the page is the first one. No cursor that encode() returns is one of the first page.
  bool is_start() const noexcept { return server.empty(); }
};

struct Page {
  std::vector<json::Raw> entries;
  std::string next_cursor;  // empty: this is the last page
};

// Returns the page that begins at `from`, for clients of `revision`. Entries that are hidden from these
// clients count towards the limits, so a page that is not the last can have fewer entries than the limits
// allow.
Page make_page(const Catalogue& catalogue, const Cursor& from, mcp::Revision revision,
               const PageLimits& limits = {});

}  // namespace fairlead::gateway
