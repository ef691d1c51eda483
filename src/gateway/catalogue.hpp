// Catalogue: an immutable snapshot of the tools, prompts, resources and templates of all servers, under their
// public names. A catalogue refers to one immutable ServerLists per server. When the lists of one server
// change, building a new catalogue copies only one reference per server. Every catalogue is a view: it has
// the servers and names that some clients see at one endpoint.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fairlead/base/result.hpp"
#include "gateway/encoded_pages.hpp"
#include "gateway/pattern_set.hpp"
#include "gateway/server_lists.hpp"

namespace fairlead::gateway {

using ListsByServer = std::map<std::string, std::shared_ptr<const ServerLists>>;

class Catalogue {
 public:
  struct ListedServer {
    std::string name;
    std::shared_ptr<const ServerLists> lists;  // never null
  };

  // How the entries of a catalogue are named and listed.
  struct Names {
    Names() {}  // NOLINT: not an aggregate, see StreamConnectOptions

    bool own = false;  // tools and prompts have the names that their only server gives them
    // The new names of renamed tools, by their public names at /mcp. A new name that another tool has too is
    // not used: the tool that has it without being renamed keeps it.
    std::map<std::string, std::string> renames;
    // If set, only tools that match one of these patterns are listed.
    std::shared_ptr<const PatternSet> listed_tools;
  };

  Catalogue() = default;
  explicit Catalogue(const ListsByServer& lists, const mcp::ListLimits& limits = {});

  // REQUIRES: `servers` is ordered by name.
  Catalogue(std::vector<ListedServer> servers, Names names);

  // Find a tool or prompt by its public name. Return null if it is unknown. The pointer is valid for the
  // lifetime of this object.
  const CatalogueEntry* find_tool(std::string_view public_name) const {
    return find_by_public_name(ListKind::tools, public_name);
  }
  const CatalogueEntry* find_prompt(std::string_view public_name) const {
    return find_by_public_name(ListKind::prompts, public_name);
  }
  // Finds a resource by its URI, or a resource template by its text. If several servers list the same URI,
  // returns the entry of the first of these servers in the order of names. Returns null if it is unknown.
  const CatalogueEntry* find_uri(ListKind kind, const EntryKey& uri) const;

  // Returns the name of the server that has the resource `uri`. The first of these rules that applies
  // decides:
  //   1. the server that lists the URI;
  //   2. the only server with a matching template that names the URI's scheme;
  //   3. the only server that has resources at all, if this catalogue is `complete`: the first attempt to
  //      fetch lists has ended for every server.
  // Returns null if no rule applies, and if the resource is quarantined at that server, or no listed resource
  // and matches a quarantined template of it. Fails with -32602 if the URI exceeds `max_uri_bytes`, if the
  // search was ended by `max_template_steps`, and if the server is ambiguous: templates of several servers
  // match, or only a template without a scheme matches and other servers have resources, too.
  Result<const std::string*> server_of_resource(std::string_view uri, bool complete = true) const;

  // Returns whether the entry, one of servers(), is listed for clients. It is not if the tool is hidden, and
  // if another entry has the same name or URI and precedes it.
  bool lists(ListKind kind, const CatalogueEntry& entry) const;
  // Returns the new names of tools that are not used because other tools have them.
  const std::vector<std::string>& unused_names() const noexcept { return unused_names_; }

  // Returns the servers ordered by name.
  std::span<const ListedServer> servers() const noexcept { return servers_; }
  // Returns null if the catalogue has no lists of this server.
  const ListedServer* find_server(std::string_view name) const;

  // Pages of this catalogue that are encoded for clients. On the loop of the gateway only.
  EncodedPages& encoded_pages() const noexcept { return encoded_pages_; }

 private:
  const CatalogueEntry* find_by_public_name(ListKind kind, std::string_view public_name) const;
  // Finds an entry of the server with whose name the public name begins.
  const CatalogueEntry* find_by_prefix(ListKind kind, std::string_view public_name) const;
  void index_renamed_tools();
  // Applies all rules of server_of_resource() except that for quarantined resources.
  Result<const std::string*> server_by_rules(std::string_view uri, bool complete) const;
  // Applies rules 2 and 3 of server_of_resource().
  Result<const std::string*> server_of_unlisted_resource(std::string_view uri, bool complete) const;

  mcp::ListLimits limits_;
  std::vector<ListedServer> servers_;
  Names names_;
  // The renamed tools by their names at this endpoint.
  std::map<std::string, const CatalogueEntry*, std::less<>> renamed_tools_;
  std::vector<std::string> unused_names_;
  mutable EncodedPages encoded_pages_;
};

}  // namespace fairlead::gateway
