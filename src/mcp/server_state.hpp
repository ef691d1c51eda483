// What a Server is made of, shared with the sessions that serve it.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fairlead/base/principal.hpp"
#include "fairlead/mcp/backend.hpp"
#include "fairlead/mcp/types.hpp"
#include "fairlead/protocol/extension.hpp"
#include "mcp/catalogue.hpp"
#include "mcp/seal.hpp"
#include "mcp/task_store.hpp"
#include "mcp/weak_list.hpp"

namespace fairlead::mcp {

// Someone to be told of changes. Called from the thread that made them.
class ChangeListener {
 public:
  virtual ~ChangeListener() = default;
  // Whose ears these are; see Context.
  virtual std::string_view session() const noexcept = 0;
  virtual const PrincipalPtr& principal() const noexcept = 0;
  virtual void list_changed(ListKind kind) = 0;
  virtual void resource_updated(const std::string& uri) = 0;
  // `detailed` is the task as notifications/tasks has it.
  virtual void task_changed(const std::string& id, const json::Raw& detailed) {
    static_cast<void>(id);
    static_cast<void>(detailed);
  }
};

class ClientLink;

struct ServerState {
  explicit ServerState(Implementation implementation) : info(std::move(implementation)) {}

  // Set before serving, not changed afterwards.
  Implementation info;
  std::string instructions;
  std::string endpoint;  // see Server::endpoint()
  std::size_t page_size = 0;
  CacheHint cache_hint;
  Extensions extensions;
  std::shared_ptr<const Sealer> sealer = std::make_shared<const Sealer>(
      std::vector<std::string>{Sealer::random_key()}, std::chrono::minutes(10));

  std::shared_ptr<Backend> backend;  // answers instead of the catalogue, when there is one

  std::shared_ptr<TaskStore> tasks = std::make_shared<TaskStore>(TaskOptions());
  std::atomic<bool> has_tools = false;     // from the first tool on that is registered
  std::atomic<bool> offers_tasks = false;  // from the first tool on that may run as one

  const std::string& endpoint_name() const noexcept { return endpoint.empty() ? info.name : endpoint; }

  std::shared_ptr<const Catalogue> catalogue() const {
    const std::lock_guard lock(mutex_);
    return catalogue_;
  }
  // Replaces the catalogue by a changed copy, if `edit` says that it changed something, and tells whoever
  // listens.
  bool change(ListKind kind, const std::function<bool(Catalogue&)>& edit);
  void listen(const std::shared_ptr<ChangeListener>& listener);
  void tell_updated(const std::string& uri);
  void tell_task(const std::string& id, const json::Raw& detailed);
  void tell_changed(ListKind kind, const Concerns& concerns = nullptr);

  // Who was sent to a URL, by the id that had (2025-11-25); of the last 10,000.
  void sent_to_url(const std::string& elicitation_id, std::weak_ptr<ClientLink> client);
  std::shared_ptr<ClientLink> take_sent(const std::string& elicitation_id);

  // A key unlike any other of this server's sessions.
  std::string next_session() { return std::to_string(++sessions_); }

 private:
  std::vector<std::shared_ptr<ChangeListener>> listeners();

  std::atomic<std::uint64_t> sessions_ = 0;
  mutable std::mutex mutex_;
  std::shared_ptr<const Catalogue> catalogue_ = std::make_shared<const Catalogue>();
  WeakList<ChangeListener> listeners_;
  std::map<std::string, std::weak_ptr<ClientLink>> sent_;
  std::deque<std::string> sent_order_;
};

}  // namespace fairlead::mcp
