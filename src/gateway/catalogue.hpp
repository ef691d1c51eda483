// Catalogue: what all servers behind a gateway offer at one moment, under the names the gateway gives. An
// immutable snapshot. It refers to one immutable part per server, so a change of one server's lists makes a
// new catalogue at the cost of one reference per server.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fairlead/base/result.hpp"
#include "gateway/offers.hpp"

namespace fairlead::gateway {

using Lists = std::map<std::string, std::shared_ptr<const Listed>>;  // by server

class Catalogue {
 public:
  struct Part {
    std::string server;
    std::shared_ptr<const Listed> listed;  // never null
  };

  Catalogue() = default;
  explicit Catalogue(const Lists& lists, const mcp::ListLimits& limits = {});

  // Tools and prompts by the name offered. Null if there is none. Valid for as long as this is.
  const Offer* tool(std::string_view offered) const { return find(Kind::tools, offered); }
  const Offer* prompt(std::string_view offered) const { return find(Kind::prompts, offered); }
  // A resource or template by its URI. If several servers list the same one, the first by name has it.
  const Offer* find_uri(Kind kind, const OfferKey& uri) const;

  // The server that a resource belongs to, in this order: the one that lists it; the only one with a template
  // that names the URI's scheme and matches; when this is `complete`, the only server that has resources at
  // all. Null: none of them. Fails with -32602 for a URI over `max_uri_bytes`, if `max_template_steps` ended
  // the search, and if it is ambiguous: templates of several servers match, or only a template without a
  // scheme does and other servers have resources, too.
  Result<const std::string*> server_of_resource(std::string_view uri, bool complete = true) const;

  // Ordered by the servers' names.
  std::span<const Part> parts() const noexcept { return parts_; }
  // Null if the server has none.
  const Part* part_of(std::string_view server) const;

 private:
  const Offer* find(Kind kind, std::string_view offered) const;
  Result<const std::string*> server_by_template(std::string_view uri, bool complete) const;

  mcp::ListLimits limits_;
  std::vector<Part> parts_;
};

}  // namespace fairlead::gateway
