// Catalogue: what all servers behind a gateway offer at one moment, under the names the gateway gives. Never
// changed once made: a change of one server's lists makes a new one, which is swapped in whole.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "fairlead/base/result.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/protocol/revision.hpp"
#include "gateway/offers.hpp"

namespace fairlead::gateway {

using Lists = std::map<std::string, std::shared_ptr<const Listed>>;  // by server

class Catalogue {
 public:
  Catalogue() : Catalogue(Lists()) {}
  // What cannot be offered, because of itself or because its name is already taken, is left out and told to
  // `problem`.
  explicit Catalogue(const Lists& lists, const std::function<void(std::string)>& problem = nullptr,
                     const mcp::ListLimits& limits = {});

  // Tools and prompts by the name offered. Valid for as long as this is.
  const Offer* tool(std::string_view offered) const { return find(Kind::tools, offered); }
  const Offer* prompt(std::string_view offered) const { return find(Kind::prompts, offered); }
  // Whose resource this is: one listed, one that fits a template, else, when this is `complete`, that of the
  // only server that has resources at all. Null: nobody's. Fails with -32602 for a URI over `max_uri_bytes`,
  // and if `max_template_steps` ended the search.
  Result<const std::string*> server_of_resource(std::string_view uri, bool complete = true) const;

  std::size_t size(Kind kind) const noexcept { return offers_[static_cast<std::size_t>(kind)].size(); }
  // The whole list as a JSON array. The eras differ in what an entry may have.
  const json::Raw& encoded(Kind kind, mcp::Revision revision) const;

 private:
  using Problem = std::function<void(std::string)>;

  void add(const std::string& server, const Listed& listed, const Problem& problem);
  const Offer* find(Kind kind, std::string_view name) const;
  void encode(Kind kind);

  mcp::ListLimits limits_;
  std::vector<std::shared_ptr<const Listed>> lists_;  // what the pointers below point into
  std::array<std::vector<const Offer*>, kKinds.size()> offers_;
  std::array<std::unordered_map<std::string_view, const Offer*>, kKinds.size()> by_name_;
  std::vector<std::vector<const Offer*>> templates_;  // of one server each
  std::vector<std::string> resource_servers_;
  std::array<json::Raw, kKinds.size()> legacy_;
  std::array<json::Raw, kKinds.size()> modern_;
};

}  // namespace fairlead::gateway
