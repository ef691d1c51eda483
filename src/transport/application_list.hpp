// ApplicationList: the applications that an endpoint has served requests with, as long as they exist. Private
// to src/transport.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "fairlead/loop/event.hpp"
#include "fairlead/transport/endpoint.hpp"

namespace fairlead::transport {

class ApplicationList {
 public:
  void add(const std::shared_ptr<Application>& application) {
    applications_.insert_or_assign(application.get(), application);
    if (applications_.size() < next_cleanup_size_) return;
    std::erase_if(applications_, [](const auto& entry) { return entry.second.expired(); });
    next_cleanup_size_ = 2 * applications_.size() + 16;
  }

  std::vector<std::shared_ptr<Application>> alive() const {
    std::vector<std::shared_ptr<Application>> found;
    for (const auto& [address, weak] : applications_) {
      if (auto application = weak.lock()) found.push_back(std::move(application));
    }
    return found;
  }

  // Drains all applications at the same time.
  Task<void> drain(Loop& loop, std::chrono::milliseconds grace) const {
    std::vector<std::pair<std::shared_ptr<Application>, Event>> draining;
    for (const std::shared_ptr<Application>& application : alive()) {
      draining.emplace_back(application, Event());
      loop.spawn(drain_one(application, grace, draining.back().second));
    }
    for (auto& [application, drained] : draining) co_await drained.wait(loop);
  }

 private:
  static Task<void> drain_one(std::shared_ptr<Application> application, std::chrono::milliseconds grace,
                              Event drained) {
    co_await application->drain(grace);
    drained.set();
  }

  std::map<const Application*, std::weak_ptr<Application>> applications_;
  std::size_t next_cleanup_size_ = 16;
};

}  // namespace fairlead::transport
