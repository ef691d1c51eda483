#include "search/tool_index.hpp"

#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "loop/run_blocking.hpp"

namespace fairlead::search {
namespace {

// Queries are limited by ToolIndex; changes by the callers, who await them.
Limits search_worker_limits() {
  Limits workers = Workers::single_thread_limits();
  workers.max_blocking_queue = std::numeric_limits<std::size_t>::max();
  return workers;
}

// Returns whether `limit` queries have copies of the slot, beside its owner.
bool is_full(const std::shared_ptr<const char>& slot, std::size_t limit) noexcept {
  return slot.use_count() > static_cast<long>(limit);
}

Error queue_full(std::string_view name, std::size_t limit, std::string_view queries) {
  return Error(ErrorKind::resource_exhausted, std::string(name) + " (" + std::to_string(limit) + ") " +
                                                  std::string(queries) +
                                                  " are already waiting for the tool index");
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
      workers_(search_worker_limits()) {}

Result<ToolIndex::QueueSlots> ToolIndex::reserve_slots(const std::string& client) {
  std::erase_if(client_slots_, [](const auto& slot) { return slot.second.expired(); });
  std::weak_ptr<const char>& client_slot = client_slots_[client];
  QueueSlots slots;
  slots.client = client_slot.lock();
  if (!slots.client) client_slot = slots.client = std::make_shared<const char>();
  if (is_full(slots.client, limits_.max_client_search_queue))
    return queue_full("max_client_search_queue", limits_.max_client_search_queue, "searches of this client");
  if (is_full(queue_slot_, limits_.max_search_queue))
    return queue_full("max_search_queue", limits_.max_search_queue, "searches");
  slots.all = queue_slot_;
  return slots;
}

template <class T>
Task<Result<T>> ToolIndex::run(std::move_only_function<Result<T>(Engine&)> operation) {
  std::move_only_function<Result<T>()> job = [engine = engine_,
                                              operation = std::move(operation)]() mutable -> Result<T> {
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

Task<Result<Hits>> ToolIndex::query(Query query, std::string client) {
  Result<QueueSlots> slots = reserve_slots(client);
  if (!slots) co_return slots.error();
  const auto deadline = std::chrono::steady_clock::now() + limits_.search_timeout;
  std::move_only_function<Result<Hits>(Engine&)> operation =
      [slots = std::move(*slots), query = std::move(query), deadline,
       waited = limits_.search_timeout](Engine& engine) mutable -> Result<Hits> {
    slots = QueueSlots();
    if (std::chrono::steady_clock::now() > deadline)
      return Error::timeout("the search for tools (search_timeout)", waited);
    return engine.ranking->search(query);
  };
  Task<Result<Hits>> running = run<Hits>(std::move(operation));
  Result<Hits> hits = co_await running;
  co_return hits;
}

}  // namespace fairlead::search
