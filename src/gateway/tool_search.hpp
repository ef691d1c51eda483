// ToolSearch: finds tools of a catalogue by text. Keeps the full-text index of the lists that catalogues
// refer to: lists are indexed in the background when they are first searched, and removed when no catalogue
// has them any more. Private to the layer.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "fairlead/loop/event.hpp"
#include "gateway/catalogue.hpp"
#include "gateway/server_table.hpp"
#include "gateway/tool_documents.hpp"

namespace fairlead::gateway {

// The domain of servers that have none.
inline constexpr std::string_view kOtherDomain = "other";

// Returns the policy of a server; that of a server of a configuration file if it does not exist.
ServerPolicyPtr policy_of(const ServerTable& servers, const std::string& server);
// Returns the domain of a server; kOtherDomain if it has none.
std::string_view domain_of(const ServerPolicy& policy) noexcept;
// Returns whether clients of the era may find the tool. Tools that are hidden by a rule can only be called.
bool is_discoverable(const CatalogueEntry& tool, bool modern) noexcept;

class ToolSearch : public std::enable_shared_from_this<ToolSearch> {
 public:
  // The limit search_index_wait: a search waits this long for tools that are not indexed yet.
  static constexpr std::chrono::seconds kIndexWait{10};

  ToolSearch(Loop& loop, std::shared_ptr<const ServerTable> servers,
             std::size_t max_indexed_tools = ToolDocuments::kMaxIndexedTools)
      : loop_(loop),
        servers_(std::move(servers)),
        index_(std::make_shared<search::ToolIndex>(loop)),
        documents_(max_indexed_tools) {}

  struct Request {
    Request() {}  // NOLINT: not an aggregate, see StreamConnectOptions

    // Other tools are not found and have no influence on the scores.
    std::shared_ptr<const Catalogue> catalogue;
    std::string client;                 // see client_key()
    std::string text;                   // any bytes
    std::optional<std::string> domain;  // search only this domain
    std::size_t limit = 10;
    bool modern = true;  // the era of the client
    std::stop_token stop;
  };
  struct Match {
    const CatalogueEntry* tool = nullptr;  // valid as long as the catalogue
    double score = 0;
  };
  struct Matches {
    std::vector<Match> tools;  // the best first
    bool more = false;
    bool complete = true;     // whether the index had been built
    bool all_indexed = true;  // whether the index has all tools; max_indexed_tools is reached otherwise
  };
  // Fails if the index is overloaded, if searches of this client are, or if the index fails.
  Task<Result<Matches>> find(Request request);

 private:
  // Lists whose tools from `next` on are not indexed yet.
  struct QueuedLists {
    std::shared_ptr<const ServerLists> lists;
    ServerPolicyPtr policy;
    ToolDocuments::Numbers numbers;
    std::size_t next = 0;
  };
  // The documents that the clients of one catalogue can find, in one domain or in all.
  struct VisibleDocuments {
    std::weak_ptr<const Catalogue> catalogue;
    bool modern = true;
    std::optional<std::string> domain;
    std::shared_ptr<const search::DocumentSet> documents;
    bool all_indexed = true;  // whether all tools of the catalogue have documents
  };
  static constexpr std::size_t kMaxVisibleSets = 16;  // further ones are computed again for each search

  // Returns whether the catalogue was searched lately, and all its lists were queued.
  bool was_queued(const std::shared_ptr<const Catalogue>& catalogue) const;
  // Queues the lists of the catalogue that are not indexed, unless it was searched lately. Returns the number
  // of lists that have been queued so far, including these.
  std::uint64_t queue_missing(const std::shared_ptr<const Catalogue>& catalogue);
  // Indexes the queued lists in batches.
  static Task<void> build(std::shared_ptr<ToolSearch> self);
  Task<Result<void>> remove_unused(search::ToolIndex& index);
  std::vector<search::Document> next_batch();
  // Waits until so many queued lists are indexed, or kIndexWait has passed. Returns whether they are.
  Task<bool> wait_until_built(std::uint64_t count, std::stop_token stop);
  // The reference is valid until the next call.
  const VisibleDocuments& visible_documents(const Request& request);
  VisibleDocuments collect_documents(const Request& request) const;
  // Discards the index after a failure. The next search builds it again.
  void reset();

  Loop& loop_;
  std::shared_ptr<const ServerTable> servers_;
  std::shared_ptr<search::ToolIndex> index_;
  ToolDocuments documents_;
  std::deque<QueuedLists> queue_;
  std::weak_ptr<const Catalogue> last_queued_;  // with all its lists
  std::uint64_t queued_count_ = 0;              // lists
  std::uint64_t built_count_ = 0;
  bool building_ = false;
  Event batch_done_;                      // set, and replaced by a new event, after each batch
  std::deque<VisibleDocuments> visible_;  // the sets used last are first
};

}  // namespace fairlead::gateway
