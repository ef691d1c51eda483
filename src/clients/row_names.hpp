// Names of rows for servers whose names in a file may be anything. Private to the library.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace fairlead::clients {

class RowNames {
 public:
  // Returns a name that is valid for a row, similar to `name`, and differs from all names returned before in
  // more than case.
  std::string add(std::string_view name);

 private:
  std::set<std::string> used_;  // in lower case
};

}  // namespace fairlead::clients
