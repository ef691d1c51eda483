#include "rpc/cut_frame.hpp"

#include "fairlead/json/scanner.hpp"

namespace fairlead::rpc {

namespace {

constexpr std::string_view kVersion = R"("jsonrpc":"2.0")";
constexpr std::string_view kId = R"("id":)";

// Takes `end` off the end of `text`, with the blanks behind it.
bool take_end(std::string_view& text, std::string_view end) {
  std::string_view rest = text;
  while (rest.ends_with(' ')) rest.remove_suffix(1);
  if (!rest.ends_with(end)) return false;
  text = rest.substr(0, rest.size() - end.size());
  return true;
}

}  // namespace

CutFrame read_cut_frame(std::string_view head) {
  json::Scanner scanner(head);
  CutFrame found;
  std::string_view key;
  bool escaped = false;
  if (!scanner.begin_object()) return found;
  while (scanner.next_member(key, escaped)) {
    std::string_view value;
    const bool whole = scanner.value(value) && value.data() + value.size() < head.data() + head.size();
    const bool is_method = key == "method" && whole && value.starts_with('"');
    if (is_method) found.method = value.substr(1, value.size() - 2);
    if (is_method || key == "result" || key == "error") found.is_message = true;
    if (!whole) break;
    if (key == "id") found.id = value;
  }
  if (!found.is_message) found.id = {};
  return found;
}

// What stands right before the last brace of an object is the end of its own last member.
std::string_view id_at_end(std::string_view tail) {
  if (!take_end(tail, "}")) return {};
  if (take_end(tail, kVersion) && !take_end(tail, ",")) return {};
  const std::size_t digits = tail.find_last_not_of("0123456789") + 1;
  std::string_view before = tail.substr(0, digits);
  const std::string_view id = tail.substr(digits);
  if (id.empty() || !take_end(before, kId)) return {};
  return take_end(before, ",") || take_end(before, "{") ? id : std::string_view();
}

}  // namespace fairlead::rpc
