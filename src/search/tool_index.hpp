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

#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/task.hpp"
#include "fairlead/loop/workers.hpp"
#include "search/ranking.hpp"

namespace fairlead::search {

struct ToolIndexLimits {
  ToolIndexLimits() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::size_t max_search_queue = 256;               // operations that wait for the thread of the index
  std::chrono::milliseconds search_timeout{5'000};  // a query that has not started by then fails
};

// Operations take effect in the order in which they are started. They fail with `resource_exhausted` if
// max_search_queue is reached. Used on the loop thread; must outlive the tasks that it returns.
class ToolIndex {
 public:
  // Starts no thread and allocates no index before the first operation.
  explicit ToolIndex(Loop& loop, const ToolIndexLimits& limits = ToolIndexLimits());

  // Adds documents, or replaces those with the same numbers. Callers split large changes into batches and
  // await each, so that queries do not wait long.
  Task<Result<void>> put(std::vector<Document> documents);
  // Removes documents. Numbers without a document are ignored.
  Task<Result<void>> remove(std::vector<DocumentNumber> numbers);
  // Finds the documents with words of the query, the best first. Fails with `timeout` after search_timeout in
  // the queue.
  Task<Result<Hits>> query(Query query);

 private:
  struct Engine;
  template <class T>
  Task<Result<T>> run(std::move_only_function<Result<T>(Engine&)> operation);

  Loop& loop_;
  ToolIndexLimits limits_;
  std::shared_ptr<Engine> engine_;          // used on the worker thread
  std::shared_ptr<const char> queue_slot_;  // each waiting operation has a copy
  Workers workers_;
};

}  // namespace fairlead::search
