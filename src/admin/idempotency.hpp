// Idempotency: a request with an Idempotency-Key is recorded in the database before it has an effect, and its
// response after it, so that a repeated request, at this gateway or another one, gets the same response and
// has no further effect. Private to the layer.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "admin/call.hpp"
#include "registry/registry.hpp"

namespace fairlead::admin {

class Idempotency : public std::enable_shared_from_this<Idempotency> {
 public:
  static constexpr std::size_t kMaxKeyBytes = 255;

  explicit Idempotency(std::shared_ptr<registry::Registry> registry) : registry_(std::move(registry)) {}

  // A request whose key is in use until the object is destroyed.
  class Use {
   public:
    Use(std::shared_ptr<Idempotency> owner, std::string actor, std::string key, std::string digest);
    ~Use();
    Use(const Use&) = delete;

   private:
    friend class Idempotency;
    std::shared_ptr<Idempotency> owner_;
    std::string actor_;
    std::string key_;
    std::string digest_;
  };

  struct Outcome {
    std::shared_ptr<Use> use;     // null: the request has no key
    std::optional<Reply> stored;  // the response to an earlier request with the key
  };
  // Fails with `invalid_header`, `idempotency_key_reused` or `idempotency_key_in_use`. `call` outlives the
  // task.
  static Task<Result<Outcome>> begin(std::shared_ptr<Idempotency> self, Call& call);
  // Makes the key of a request that has failed free again. `use` outlives the task.
  static Task<Result<void>> forget(const Use& use);
  // Stores a successful response. `call` and `use` outlive the task.
  static Task<Result<void>> store(const Call& call, const Use& use, const Reply& reply);

 private:
  std::shared_ptr<registry::Registry> registry_;
  std::set<std::pair<std::string, std::string>> in_use_;  // actor and key
};

}  // namespace fairlead::admin
