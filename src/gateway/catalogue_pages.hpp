// Pages of the lists that clients see. A page refers to entries of the catalogue, each encoded once when its
// server listed it.
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
  std::size_t max_page_bytes = 1u << 20;  // a single larger entry is a page of its own
};

// Where the next page begins: after the first `position` offers of `server`, the last of which has a name
// with the hash `last`. Remains usable when the lists change: if that offer has moved, the page begins after
// it; if it is gone, at the same position; if the server is gone, with the next server.
struct Cursor {
  Kind kind = Kind::tools;
  std::string server;
  std::size_t position = 0;
  std::size_t last = 0;

  // The start of the list if `cursor` is absent. Fails with -32602 for what is not a cursor of a list of this
  // kind.
  static Result<Cursor> parse(Kind kind, json::View cursor);
  std::string text() const;
};

struct Page {
  std::vector<json::Raw> entries;
  std::string next_cursor;  // empty: this is the last page
};

// The page that begins at `from`, as clients of `revision` see it. A page may have fewer entries than the
// limits allow although others follow: entries that these clients do not see count.
Page page_of(const Catalogue& catalogue, const Cursor& from, mcp::Revision revision,
             const PageLimits& limits = {});

}  // namespace fairlead::gateway
