// OwnListFetcher: fetches the lists of a client's own upstream of a server with sharing `per_user` whose
// shared lists could not be fetched, for example because only users have the secret that the server needs.
// Private to the layer.
#pragma once

#include <memory>
#include <stop_token>

#include "gateway/endpoint_scope.hpp"
#include "gateway/list_fetcher.hpp"

namespace fairlead::gateway {

class OwnListFetcher : public std::enable_shared_from_this<OwnListFetcher> {
 public:
  OwnListFetcher(Loop& loop, std::shared_ptr<pool::Pool> pool, std::shared_ptr<ListFetcher> list_fetcher)
      : loop_(loop), pool_(std::move(pool)), list_fetcher_(std::move(list_fetcher)) {}

  // Returns whether the client's own lists are needed and have not been fetched.
  static bool is_needed(const ServerEntry& entry, const Principal& client);
  // Starts the client's own upstream, and returns when its lists have been fetched. Succeeds if `entry` is
  // retired meanwhile.
  static Task<Result<void>> fetch(std::shared_ptr<OwnListFetcher> self, std::shared_ptr<ServerEntry> entry,
                                  PrincipalPtr client, std::stop_token stop);
  // Fetches the lists of all servers of the endpoint for which is_needed(), and returns when they have been
  // fetched or could not be, or after `timeout`.
  static Task<void> wait_for_all(std::shared_ptr<OwnListFetcher> self,
                                 std::shared_ptr<const ServerTable> servers,
                                 std::shared_ptr<const EndpointScope> scope, PrincipalPtr client,
                                 std::stop_token stop, Clock::duration timeout);

 private:
  // Fetches in the background, unless that is in progress.
  void start(const std::shared_ptr<ServerEntry>& entry, const PrincipalPtr& client);
  static Task<void> run(std::shared_ptr<OwnListFetcher> self, std::shared_ptr<ServerEntry> entry,
                        PrincipalPtr client);

  Loop& loop_;
  std::shared_ptr<pool::Pool> pool_;
  std::shared_ptr<ListFetcher> list_fetcher_;
};

}  // namespace fairlead::gateway
