#include "fairlead/json/raw.hpp"

namespace fairlead::json {

Result<Raw> Raw::parse(std::string_view text, std::size_t max_depth) {
  Scanner scanner(text, max_depth);
  std::string_view value;
  if (scanner.value(value) && scanner.finish()) {
    return Raw(Bytes::copy_of(value), !scanner.saw_line_break());
  }
  return Error(ErrorKind::serialize, scanner.error().message());
}

}  // namespace fairlead::json
