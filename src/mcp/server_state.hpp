// ServerState: the state of a Server, shared with the sessions that serve it.
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

// Receives notifications of changes on behalf of one client. Called on the thread that made the change.
class ChangeListener {
 public:
  virtual ~ChangeListener() = default;
  // The session and the principal of the client; see Context.
  virtual std::string_view session() const noexcept = 0;
  virtual const PrincipalPtr& principal() const noexcept = 0;
  virtual void on_list_changed(ListKind kind) = 0;
  virtual void on_resource_updated(const std::string& uri) = 0;
  // `detailed_task` is the complete state of the task, as the params of notifications/tasks contain it.
  virtual void on_task_changed(const std::string& id, const json::Raw& detailed_task) {
    static_cast<void>(id);
    static_cast<void>(detailed_task);
  }
};

class ClientLink;

struct ServerState {
  explicit ServerState(Implementation implementation);

  const Implementation info;
  const json::Raw modern_meta;  // `_meta` of a modern result that has no other members there

  // Set before serving, not changed afterwards:
  std::string instructions;
  std::string configured_endpoint_name;  // see Server::endpoint_name(); empty if not set
  std::size_t page_size = 0;
  std::string session_prefix;
  CacheHint cache_hint;
  Extensions extensions;
  std::shared_ptr<const Sealer> sealer = std::make_shared<const Sealer>(
      std::vector<std::string>{Sealer::random_key()}, std::chrono::minutes(10));

  std::shared_ptr<Backend> backend;  // if set, serves requests instead of the catalogue

  std::shared_ptr<TaskStore> task_store = std::make_shared<TaskStore>(TaskOptions());
  std::atomic<bool> has_tools = false;     // set when the first tool is registered, never reset
  std::atomic<bool> lists_tools = false;   // whether the catalogue has tools now
  std::atomic<bool> offers_tasks = false;  // set when the first tool that may run as a task is registered

  const std::string& endpoint_name() const noexcept {
    return configured_endpoint_name.empty() ? info.name : configured_endpoint_name;
  }

  std::shared_ptr<const Catalogue> catalogue() const {
    const std::lock_guard lock(mutex_);
    return catalogue_;
  }
  // Calls `edit` with a copy of the catalogue. If `edit` returns true, replaces the catalogue by the copy,
  // notifies all listeners that the list of `kind` has changed, and returns true. Thread-safe.
  bool edit_catalogue(ListKind kind, const std::function<bool(Catalogue&)>& edit);
  // The listener is notified for as long as it exists.
  void add_listener(const std::shared_ptr<ChangeListener>& listener);
  // Notify the listeners; the last function only those for whose client `predicate` returns true, or all if
  // it is empty. Thread-safe.
  void notify_resource_updated(const std::string& uri);
  void notify_task_changed(const std::string& id, const json::Raw& detailed_task);
  void notify_list_changed(ListKind kind, const ClientPredicate& predicate = nullptr);

  // Stores which client was sent a URL elicitation (revision 2025-11-25), for the last 10,000 elicitations.
  // The second function returns that client and erases it here. It returns null if the elicitation is unknown
  // or the client has disconnected.
  void store_url_elicitation_client(const std::string& elicitation_id, std::weak_ptr<ClientLink> client);
  std::shared_ptr<ClientLink> extract_url_elicitation_client(const std::string& elicitation_id);

  // Returns a key that no other session of this server has, nor of another server with another
  // session_prefix.
  std::string next_session_id() { return session_prefix + std::to_string(++last_session_id_); }

 private:
  std::vector<std::shared_ptr<ChangeListener>> listeners();

  std::atomic<std::uint64_t> last_session_id_ = 0;
  mutable std::mutex mutex_;
  std::shared_ptr<const Catalogue> catalogue_ = std::make_shared<const Catalogue>();
  WeakList<ChangeListener> listeners_;
  std::map<std::string, std::weak_ptr<ClientLink>> url_elicitation_clients_;  // by elicitation id
  std::deque<std::string> url_elicitation_ids_;                               // oldest first
};

}  // namespace fairlead::mcp
