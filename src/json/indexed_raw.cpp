#include "fairlead/json/indexed_raw.hpp"

namespace fairlead::json {

View IndexedRaw::operator[](std::string_view key) const {
  return members_.find(View(raw_).text(), key);
}

Raw IndexedRaw::raw_member(std::string_view key) const {
  const View found = (*this)[key];
  return found.absent() ? Raw() : Raw::trusted(raw_.bytes().part(found.text()), raw_.is_one_line());
}

}  // namespace fairlead::json
