#include "gateway/tool_search.hpp"

#include <algorithm>
#include <utility>

namespace fairlead::gateway {
namespace {

constexpr std::size_t kMaxBatchTools = 256;
constexpr std::size_t kMaxBatchBytes = 512u << 10;

Error index_failed() {
  return Error(ErrorKind::io,
               "the tool index failed and is being built again: search again in a few seconds");
}

std::size_t text_bytes(const search::ToolText& text) noexcept {
  return text.description.size() + text.input_schema.size();
}

}  // namespace

ServerPolicyPtr policy_of(const ServerTable& servers, const std::string& server) {
  const auto entry = servers.find(server);
  return entry ? entry->policy : ServerEntry::default_policy();
}

std::string_view domain_of(const ServerPolicy& policy) noexcept {
  return policy.domain.empty() ? kOtherDomain : std::string_view(policy.domain);
}

bool is_discoverable(const CatalogueEntry& tool, bool modern) noexcept {
  return tool.listed && (modern || !tool.legacy_json.absent());
}

Task<Result<ToolSearch::Matches>> ToolSearch::find(Request request) {
  const auto self = shared_from_this();
  const std::shared_ptr<search::ToolIndex> index = index_;
  const std::uint64_t needed = queue_missing(request.catalogue);
  Matches matches;
  matches.complete = co_await wait_until_built(needed, request.stop);
  if (index != index_) co_return index_failed();
  const VisibleDocuments& visible = visible_documents(request);
  matches.all_indexed = visible.all_indexed;
  search::Query query;
  query.text = request.text;
  query.limit = request.limit;
  query.visible = visible.documents;
  const Result<search::Hits> hits = co_await index->query(std::move(query), request.client);
  if (index != index_) co_return index_failed();
  if (!hits) co_return hits.error();
  matches.more = hits->more;
  for (const search::Hit& hit : hits->hits) {
    const CatalogueEntry& tool = documents_.tool(hit.number);
    // At an endpoint with renamed tools, another tool can have the same name.
    if (request.catalogue->find_tool(tool.public_name) == &tool) matches.tools.push_back({&tool, hit.score});
  }
  co_return matches;
}

bool ToolSearch::was_queued(const std::shared_ptr<const Catalogue>& catalogue) const {
  return last_queued_.lock() == catalogue ||
         std::ranges::any_of(visible_, [&catalogue](const VisibleDocuments& visible) {
           return visible.all_indexed && visible.catalogue.lock() == catalogue;
         });
}

std::uint64_t ToolSearch::queue_missing(const std::shared_ptr<const Catalogue>& catalogue) {
  if (was_queued(catalogue)) return queued_count_;
  const std::uint64_t queued_before = queued_count_;
  last_queued_ = catalogue;
  for (const Catalogue::ListedServer& server : catalogue->servers()) {
    ServerPolicyPtr policy = policy_of(*servers_, server.name);
    if (documents_.has(server.lists, policy)) continue;
    const ToolDocuments::Numbers* const numbers = documents_.add(server.lists, policy);
    if (!numbers) {
      last_queued_.reset();  // The next search tries again.
      continue;
    }
    queue_.push_back(QueuedLists{server.lists, std::move(policy), *numbers});
    ++queued_count_;
  }
  if (queued_count_ != queued_before)
    std::erase_if(visible_, [](const VisibleDocuments& visible) { return !visible.all_indexed; });
  if (!std::exchange(building_, true)) loop_.spawn(build(shared_from_this()));
  return queued_count_;
}

Task<void> ToolSearch::build(std::shared_ptr<ToolSearch> self) {
  const std::shared_ptr<search::ToolIndex> index = self->index_;
  Result<void> done = co_await self->remove_unused(*index);
  while (done && !self->queue_.empty()) {
    std::vector<search::Document> batch = self->next_batch();
    const std::uint64_t built = self->queued_count_ - self->queue_.size();
    done = co_await index->put(std::move(batch));
    if (!done) break;
    self->built_count_ = built;
    std::exchange(self->batch_done_, Event()).set();
  }
  self->building_ = false;
  if (!done) self->reset();
}

Task<Result<void>> ToolSearch::remove_unused(search::ToolIndex& index) {
  ToolDocuments::Numbers removed = documents_.remove_unused();
  if (removed.empty()) co_return Result<void>();
  Result<void> done = co_await index.remove(std::move(removed));
  co_return done;
}

// Removes lists from the queue when all their tools are in a batch.
std::vector<search::Document> ToolSearch::next_batch() {
  std::vector<search::Document> batch;
  std::size_t bytes = 0;
  while (!queue_.empty() && batch.size() < kMaxBatchTools && bytes < kMaxBatchBytes) {
    QueuedLists& queued = queue_.front();
    if (queued.next < queued.numbers.size()) {
      const CatalogueEntry& tool = queued.lists->entries(ListKind::tools)[queued.next];
      batch.push_back(search::Document{queued.numbers[queued.next++], tool_text(tool, *queued.policy)});
      bytes += text_bytes(batch.back().text);
    }
    if (queued.next == queued.numbers.size()) queue_.pop_front();
  }
  return batch;
}

Task<bool> ToolSearch::wait_until_built(std::uint64_t count, std::stop_token stop) {
  const Clock::time_point deadline = Clock::now() + kIndexWait;
  while (built_count_ < count && Clock::now() < deadline && !stop.stop_requested())
    co_await batch_done_.wait(loop_, deadline - Clock::now());
  co_return built_count_ >= count;
}

const ToolSearch::VisibleDocuments& ToolSearch::visible_documents(const Request& request) {
  const auto found = std::ranges::find_if(visible_, [&request](const VisibleDocuments& visible) {
    return visible.modern == request.modern && visible.domain == request.domain &&
           visible.catalogue.lock() == request.catalogue;
  });
  VisibleDocuments visible;
  if (found != visible_.end()) {
    visible = std::move(*found);
    visible_.erase(found);
  } else {
    visible = collect_documents(request);
  }
  visible_.push_front(std::move(visible));
  if (visible_.size() > kMaxVisibleSets) visible_.pop_back();
  return visible_.front();
}

ToolSearch::VisibleDocuments ToolSearch::collect_documents(const Request& request) const {
  VisibleDocuments visible;
  visible.catalogue = request.catalogue;
  visible.modern = request.modern;
  visible.domain = request.domain;
  search::DocumentSet documents;
  for (const Catalogue::ListedServer& server : request.catalogue->servers()) {
    const ToolDocuments::Numbers* const numbers = documents_.find(server.lists);
    if (!numbers) {
      visible.all_indexed = false;
      continue;
    }
    if (request.domain && domain_of(*policy_of(*servers_, server.name)) != *request.domain) continue;
    const auto& tools = server.lists->entries(ListKind::tools);
    for (std::size_t i = 0; i < numbers->size(); ++i) {
      if (is_discoverable(tools[i], request.modern)) documents.insert((*numbers)[i]);
    }
  }
  visible.documents = std::make_shared<const search::DocumentSet>(std::move(documents));
  return visible;
}

void ToolSearch::reset() {
  index_ = std::make_shared<search::ToolIndex>(loop_);
  documents_ = ToolDocuments(documents_.max_tools());
  queue_.clear();
  visible_.clear();
  last_queued_.reset();
  built_count_ = queued_count_;
  std::exchange(batch_done_, Event()).set();
}

}  // namespace fairlead::gateway
