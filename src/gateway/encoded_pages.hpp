// EncodedPages: the results of list requests that were made repeatedly to one catalogue, as encoded JSON. A
// stored page is sent without being built or copied again, and is freed with its catalogue. Private to the
// layer. Not thread-safe: used on the loop of the gateway only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fairlead/json/raw.hpp"
#include "fairlead/protocol/revision.hpp"
#include "gateway/server_lists.hpp"

namespace fairlead::gateway {

class EncodedPages {
 public:
  // Limits the bytes of the stored pages of all catalogues together (max_cached_page_bytes).
  struct Budget {
    std::size_t max_bytes = 16u << 20;
    std::size_t used_bytes = 0;
  };

  // Everything besides the catalogue that a page depends on.
  struct Key {
    std::uint64_t scope = 0;  // EndpointScope::id() of the endpoint, which may have tools of its own
    std::weak_ptr<const mcp::Catalogue> own_tools;  // the tools that were added to the front server
    ListKind kind = ListKind::tools;
    mcp::Revision revision = mcp::kNewestRevision;
    std::string cursor;  // as spelled in the request; empty: the first page

    bool operator==(const Key& other) const noexcept;
  };

  EncodedPages() = default;
  EncodedPages(const EncodedPages&) = delete;
  EncodedPages& operator=(const EncodedPages&) = delete;
  ~EncodedPages();

  // Returns the stored page; an absent value if it is not stored.
  json::Raw find(const Key& key);
  // Called with a page that find() did not return. The first call for a key only notes the request, because
  // most views of a catalogue are listed once; the second call stores the page. Evicts the least recently
  // requested pages of this catalogue until kMaxPages and the budget are kept. If that does not suffice, the
  // page is not stored.
  void add(Key key, const json::Raw& page, const std::shared_ptr<Budget>& budget);

  static constexpr std::size_t kMaxPages = 64;  // stored or noted, per catalogue

 private:
  struct Entry {
    Key key;
    json::Raw page;  // absent: requested once and not stored
  };

  // Moves the entry with this key to the end, which is the most recently requested one. Returns null if there
  // is none.
  Entry* touch(const Key& key);
  bool reserve(std::size_t bytes);
  void release(const Entry& entry) noexcept;

  std::shared_ptr<Budget> budget_;  // null: nothing has been stored
  std::vector<Entry> entries_;      // least recently requested first
};

}  // namespace fairlead::gateway
