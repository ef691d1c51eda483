#include "rpc/truncated_frame.hpp"

#include "fairlead/json/scanner.hpp"

namespace fairlead::rpc {

namespace {

constexpr std::string_view kVersionMember = R"("jsonrpc":"2.0")";
constexpr std::string_view kIdKey = R"("id":)";

// Removes `suffix` and the spaces after it from the end of `text`. Returns false if `text` has another end.
bool consume_suffix(std::string_view& text, std::string_view suffix) {
  std::string_view rest = text;
  while (rest.ends_with(' ')) rest.remove_suffix(1);
  if (!rest.ends_with(suffix)) return false;
  text = rest.substr(0, rest.size() - suffix.size());
  return true;
}

}  // namespace

TruncatedFrame read_truncated_frame(std::string_view head) {
  json::Scanner scanner(head);
  TruncatedFrame frame;
  std::string_view key;
  bool escaped = false;
  if (!scanner.begin_object()) return frame;
  while (scanner.next_member(key, escaped)) {
    std::string_view value;
    const bool complete = scanner.value(value) && value.data() + value.size() < head.data() + head.size();
    const bool is_method = key == "method" && complete && value.starts_with('"');
    if (is_method) frame.method = value.substr(1, value.size() - 2);
    if (is_method || key == "result" || key == "error") frame.is_message = true;
    if (!complete) break;
    if (key == "id") frame.id = value;
  }
  if (!frame.is_message) frame.id = {};
  return frame;
}

// Searches only directly before the last brace of the frame, where the last member of the message is. So the
// id found is not that of a nested object.
std::string_view trailing_id(std::string_view tail) {
  if (!consume_suffix(tail, "}")) return {};
  if (consume_suffix(tail, kVersionMember) && !consume_suffix(tail, ",")) return {};
  const std::size_t digits = tail.find_last_not_of("0123456789") + 1;
  std::string_view before = tail.substr(0, digits);
  const std::string_view id = tail.substr(digits);
  if (id.empty() || !consume_suffix(before, kIdKey)) return {};
  return consume_suffix(before, ",") || consume_suffix(before, "{") ? id : std::string_view();
}

}  // namespace fairlead::rpc
