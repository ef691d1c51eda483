#include "fairlead/json/indexed.hpp"

namespace fairlead::json {

View Indexed::operator[](std::string_view key) const {
  return members_.find(View(raw_).text(), key);
}

Raw Indexed::part(std::string_view key) const {
  const View found = (*this)[key];
  return found.absent() ? Raw() : Raw::trusted(raw_.bytes().part(found.text()), raw_.one_line());
}

}  // namespace fairlead::json
