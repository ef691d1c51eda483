// ServerOptions: the options of `fairlead servers add` and `edit` that describe a server.
#pragma once

#include <string>
#include <vector>

#include "cli/admin_client.hpp"

namespace fairlead::cli {

struct ServerOptions {
  std::vector<std::string> command;  // COMMAND ARG…, or "-": JSON on stdin
  std::string url;
  std::string title, description, domain, visibility, owner, drift, cwd;
  std::vector<std::string> environment, headers, tags;
  std::vector<std::string> allow, deny, hide;
  std::vector<std::string> set, unset;
  bool hidden = false;
  bool disabled = false;

  void add_to(CLI::App& app);
  // Returns whether no option was given.
  bool empty() const;
  // Returns the body of a POST for a new server, or the merge patch of a PATCH if `name` is empty. Fails with
  // `validation` if options contradict each other.
  Result<json::Raw> body(const std::string& name) const;
};

}  // namespace fairlead::cli
