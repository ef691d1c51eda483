// PublishedServers: the servers of the registry that are published, as entries of a public registry. Private
// to the layer.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "fairlead/json/raw.hpp"
#include "registry/registry.hpp"

namespace fairlead::admin {

struct PublishedServer {
  std::string id;           // of the row
  std::string version;      // of the document
  json::Raw document;       // the server.json
  std::string search_text;  // in lower case
  registry::Time published_at{};
  registry::Time updated_at{};
};

// The versions of one server, by the names of versions, the newest last.
struct NewerVersion {
  bool operator()(std::string_view a, std::string_view b) const;
  using is_transparent = void;
};
using PublishedVersions = std::map<std::string, PublishedServer, NewerVersion>;

class PublishedServers {
 public:
  using Map = std::map<std::string, PublishedVersions, std::less<>>;

  // Follows the changes of the registry until it is destroyed.
  explicit PublishedServers(const std::shared_ptr<registry::Registry>& registry);
  PublishedServers(const PublishedServers&) = delete;

  // By the name of the server.
  const Map& all() const noexcept { return servers_; }

 private:
  void add(const registry::ServerPtr& row);
  void remove(const registry::Server& row);

  // Several rows may have the same name and version. The one with the smallest id is shown.
  std::map<std::string, std::map<std::string, std::map<std::string, registry::ServerPtr>>> rows_;
  void show(const std::string& name, const std::string& version);

  Map servers_;
  std::shared_ptr<void> subscription_;
};

}  // namespace fairlead::admin
