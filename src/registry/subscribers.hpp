// Subscribers: callbacks that end with the handles of their subscriptions. Private to the library.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace fairlead::registry {

template <class T>
class Subscribers {
 public:
  using Callback = std::function<void(const T&)>;

  // The subscription ends when the returned handle is destroyed.
  std::shared_ptr<void> add(Callback callback) {
    const auto handle = std::make_shared<Callback>(std::move(callback));
    std::erase_if(callbacks_, [](const std::weak_ptr<Callback>& known) { return known.expired(); });
    callbacks_.push_back(handle);
    return handle;
  }
  // Callbacks may add and end subscriptions.
  void notify(const T& value) const {
    const std::vector<std::weak_ptr<Callback>> callbacks = callbacks_;
    for (const std::weak_ptr<Callback>& known : callbacks) {
      if (const auto callback = known.lock()) (*callback)(value);
    }
  }

 private:
  std::vector<std::weak_ptr<Callback>> callbacks_;
};

}  // namespace fairlead::registry
