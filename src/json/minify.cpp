#include <algorithm>

#include "fairlead/json/scanner.hpp"
#include "json/text_scan.hpp"

namespace fairlead::json {

std::string minify(std::string_view text) {
  std::string out(text.size(), '\0');
  char* to = out.data();
  const char* p = text.data();
  const char* const end = p + text.size();
  while (p != end) {
    if (*p != '"') {  // always copied; white space is overwritten by the next byte
      *to = *p;
      to += !is_space(*p++);
      continue;
    }
    const char* const from = p++;
    while (*p != '"') p = *p == '\\' ? p + 2 : skip_plain<PlainBytes::utf8>(p, end);
    ++p;
    to = std::copy(from, p, to);
  }
  out.resize(static_cast<std::size_t>(to - out.data()));
  return out;
}

std::string to_one_line(std::string_view text) {
  std::string out(text);
  replace_line_breaks(out.data(), out.data() + out.size());
  return out;
}

}  // namespace fairlead::json
