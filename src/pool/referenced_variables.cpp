#include "pool/referenced_variables.hpp"

#include <unistd.h>

#include <utility>

namespace fairlead::pool {

void ReferencedVariables::set(const std::string& server, std::set<std::string> variables) {
  erase(server);
  for (const std::string& variable : variables) ++reference_counts_[variable];
  by_server_.emplace(server, std::move(variables));
}

void ReferencedVariables::erase(std::string_view server) {
  const auto found = by_server_.find(server);
  if (found == by_server_.end()) return;
  for (const std::string& variable : found->second) {
    const auto counted = reference_counts_.find(variable);
    if (--counted->second == 0) reference_counts_.erase(counted);
  }
  by_server_.erase(found);
}

std::vector<std::string> ReferencedVariables::withheld_from(std::string_view server) const {
  const auto own = by_server_.find(server);
  std::vector<std::string> withheld;
  for (char** variable = environ; variable && *variable; ++variable) {
    const std::string_view entry(*variable);
    std::string name(entry.substr(0, entry.find('=')));
    const bool is_own = own != by_server_.end() && own->second.contains(name);
    if (!is_own && reference_counts_.contains(name)) withheld.push_back(std::move(name));
  }
  return withheld;
}

}  // namespace fairlead::pool
