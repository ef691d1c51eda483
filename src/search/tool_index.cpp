#include "search/tool_index.hpp"

#include <optional>
#include <string>
#include <utility>

#include "loop/run_blocking.hpp"

namespace fairlead::search {
namespace {

Limits search_worker_limits(const ToolIndexLimits& limits) {
  Limits workers = Workers::single_thread_limits();
  workers.max_blocking_queue = limits.max_search_queue + 1;
  return workers;
}

}  // namespace

// The index itself. After a failed change it only returns that failure, because its parts may disagree.
struct ToolIndex::Engine {
  Result<void> open() {
    if (failure) return *failure;
    if (store) return {};
    Result<std::unique_ptr<DocumentStore>> created = DocumentStore::create();
    if (!created) return created.error();
    store = std::move(*created);
    ranking.emplace(*store);
    return {};
  }
  Result<void> change(Result<void> done) {
    if (!done) failure = done.error();
    return done;
  }

  std::unique_ptr<DocumentStore> store;
  std::optional<Ranking> ranking;
  std::optional<Error> failure;
};

ToolIndex::ToolIndex(Loop& loop, const ToolIndexLimits& limits)
    : loop_(loop),
      limits_(limits),
      engine_(std::make_shared<Engine>()),
      queue_slot_(std::make_shared<const char>()),
      workers_(search_worker_limits(limits)) {}

template <class T>
Task<Result<T>> ToolIndex::run(std::move_only_function<Result<T>(Engine&)> operation) {
  if (queue_slot_.use_count() > static_cast<long>(limits_.max_search_queue)) {
    co_return Error(ErrorKind::resource_exhausted, "max_search_queue (" +
                                                       std::to_string(limits_.max_search_queue) +
                                                       ") operations are already waiting for the tool index");
  }
  std::move_only_function<Result<T>()> job = [slot = queue_slot_, engine = engine_,
                                              operation = std::move(operation)]() mutable -> Result<T> {
    slot.reset();
    const Result<void> opened = engine->open();
    if (!opened) return opened.error();
    return operation(*engine);
  };
  Result<T> outcome = co_await run_blocking<T>(loop_, workers_, std::move(job));
  co_return outcome;
}

Task<Result<void>> ToolIndex::put(std::vector<Document> documents) {
  std::move_only_function<Result<void>(Engine&)> operation = [documents =
                                                                  std::move(documents)](Engine& engine) {
    return engine.change(engine.store->put(documents));
  };
  return run<void>(std::move(operation));
}

Task<Result<void>> ToolIndex::remove(std::vector<DocumentNumber> numbers) {
  std::move_only_function<Result<void>(Engine&)> operation = [numbers = std::move(numbers)](Engine& engine) {
    return engine.change(engine.store->remove(numbers));
  };
  return run<void>(std::move(operation));
}

Task<Result<Hits>> ToolIndex::query(Query query) {
  const auto deadline = std::chrono::steady_clock::now() + limits_.search_timeout;
  std::move_only_function<Result<Hits>(Engine&)> operation =
      [query = std::move(query), deadline, waited = limits_.search_timeout](Engine& engine) -> Result<Hits> {
    if (std::chrono::steady_clock::now() > deadline)
      return Error::timeout("the search for tools (search_timeout)", waited);
    return engine.ranking->search(query);
  };
  return run<Hits>(std::move(operation));
}

}  // namespace fairlead::search
