// ToolIndex: a full-text index of tools in memory. Its work runs on a thread of its own, never on the loop.
// Private to the library.
//
//   search::ToolIndex index(loop);
//   Result<void> added = co_await index.put(std::move(documents));
//   search::Query query;
//   query.text = "rename a file";
//   Result<search::Hits> found = co_await index.query(std::move(query));
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/task.hpp"
#include "fairlead/loop/workers.hpp"
#include "search/ranking.hpp"

namespace fairlead::search {

struct ToolIndexLimits {
  ToolIndexLimits() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::size_t max_search_queue = 256;               // queries that wait for the thread of the index
  std::size_t max_client_search_queue = 64;         // of them, those of one client
  std::chrono::milliseconds search_timeout{5'000};  // a query that has not started by then fails
};

// Operations take effect in the order in which they are started. Used on the loop thread; must outlive the
// tasks that it returns.
class ToolIndex {
 public:
  // Starts no thread and allocates no index before the first operation.
  explicit ToolIndex(Loop& loop, const ToolIndexLimits& limits = ToolIndexLimits());

  // Adds documents, or replaces those with the same numbers. Callers split large changes into batches and
  // await each, so that queries do not wait long. Changes are never refused, however many queries wait.
  Task<Result<void>> put(std::vector<Document> documents);
  // Removes documents. Numbers without a document are ignored.
  Task<Result<void>> remove(std::vector<DocumentNumber> numbers);
  // Finds the documents with words of the query, the best first. `client` identifies whose query it is. Fails
  // with `resource_exhausted` if max_search_queue or max_client_search_queue is reached, and with `timeout`
  // after search_timeout in the queue.
  Task<Result<Hits>> query(Query query, std::string client = std::string());

 private:
  struct Engine;
  // Places of a waiting query in the queue, which are released when they are destroyed.
  using QueueSlot = std::shared_ptr<const char>;
  struct QueueSlots {
    QueueSlot all;
    QueueSlot client;
  };
  Result<QueueSlots> reserve_slots(const std::string& client);
  template <class T>
  Task<Result<T>> run(std::move_only_function<Result<T>(Engine&)> operation);

  Loop& loop_;
  ToolIndexLimits limits_;
  std::shared_ptr<Engine> engine_;  // used on the worker thread
  QueueSlot queue_slot_;            // each waiting query has a copy
  // By client; expired when no query of the client waits.
  std::map<std::string, std::weak_ptr<const char>, std::less<>> client_slots_;
  Workers workers_;
};

}  // namespace fairlead::search
