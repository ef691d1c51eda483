// What a Server is made of, shared with the sessions that serve it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fairlead/mcp/types.hpp"
#include "mcp/catalogue.hpp"
#include "mcp/seal.hpp"

namespace fairlead::mcp {

// Someone to be told of changes. Called from the thread that made them.
class ChangeListener {
 public:
  virtual ~ChangeListener() = default;
  virtual void list_changed(ListKind kind) = 0;
  virtual void resource_updated(const std::string& uri) = 0;
};

struct ServerState {
  explicit ServerState(Implementation implementation) : info(std::move(implementation)) {}

  // Set before serving, not changed afterwards.
  Implementation info;
  std::string instructions;
  std::size_t page_size = 0;
  CacheHint cache_hint;
  std::shared_ptr<const Sealer> sealer = std::make_shared<const Sealer>(
      std::vector<std::string>{Sealer::random_key()}, std::chrono::minutes(10));

  std::shared_ptr<const Catalogue> catalogue() const {
    const std::lock_guard lock(mutex_);
    return catalogue_;
  }
  // Replaces the catalogue by a changed copy, if `edit` says that it changed something, and tells whoever
  // listens.
  bool change(ListKind kind, const std::function<bool(Catalogue&)>& edit);
  void listen(const std::shared_ptr<ChangeListener>& listener);
  void tell_updated(const std::string& uri);

 private:
  std::vector<std::shared_ptr<ChangeListener>> listeners();

  mutable std::mutex mutex_;
  std::shared_ptr<const Catalogue> catalogue_ = std::make_shared<const Catalogue>();
  std::vector<std::weak_ptr<ChangeListener>> listeners_;
  std::size_t sweep_at_ = 16;
};

}  // namespace fairlead::mcp
