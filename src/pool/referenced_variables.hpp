// ReferencedVariables: the environment variables that the specs of servers refer to (`${env:NAME}`). A child
// process does not inherit variables that only other servers refer to. Private to the layer.
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
  // Sets the variables that `server` refers to, in place of those set before.
  void set(const std::string& server, std::set<std::string> variables);
  void erase(std::string_view server);
  // Returns the variables of this process's environment that only other servers refer to. The cost depends on
  // the size of the environment, not on the number of servers.
  std::vector<std::string> withheld_from(std::string_view server) const;

 private:
  std::map<std::string, std::set<std::string>, std::less<>> by_server_;
  std::map<std::string, std::size_t, std::less<>>
      reference_counts_;  // number of servers that refer to a variable
};

}  // namespace fairlead::pool
