// ReferencedVariables: the environment variables that servers refer to. A process inherits those of its own
// server only. Private to the layer.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fairlead::pool {

class ReferencedVariables {
 public:
  // Replaces the variables of `server`.
  void set(const std::string& server, std::set<std::string> variables);
  void erase(std::string_view server);
  // The variables of this process's environment that only other servers refer to. The cost depends on the
  // size of the environment, not on the number of servers.
  std::vector<std::string> withheld_from(std::string_view server) const;

 private:
  std::map<std::string, std::set<std::string>, std::less<>> by_server_;
  std::map<std::string, std::size_t, std::less<>> references_;  // how many servers refer to a variable
};

}  // namespace fairlead::pool
