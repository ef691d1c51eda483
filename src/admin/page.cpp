#include "admin/page.hpp"

#include <charconv>

#include "admin/problem.hpp"
#include "fairlead/base/base64.hpp"

namespace fairlead::admin {

namespace {

Result<std::size_t> parse_limit(const std::string& text) {
  std::size_t limit = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), limit);
  if (failure != std::errc() || end != text.data() + text.size() || limit == 0 || limit > kMaxPageItems)
    return parameter_error("limit", "is not a number from 1 to " + std::to_string(kMaxPageItems));
  return limit;
}

}  // namespace

Result<PageRequest> PageRequest::parse(const Query& query, std::string_view list) {
  PageRequest request;
  if (const std::string* const limit = query.find("limit")) {
    const Result<std::size_t> parsed = parse_limit(*limit);
    if (!parsed) return parsed.error();
    request.limit = *parsed;
  }
  const std::string* const cursor = query.find("cursor");
  if (!cursor) return request;
  const std::optional<std::string> decoded = base64url_decode(*cursor);
  const std::string prefix = std::string(list) + ":";
  if (!decoded || !decoded->starts_with(prefix) || decoded->size() == prefix.size())
    return problem(codes::kInvalidCursor, "the cursor does not belong to the list of " + std::string(list));
  request.after = decoded->substr(prefix.size());
  return request;
}

std::string encode_cursor(std::string_view list, std::string_view key) {
  return base64url_encode(std::string(list) + ":" + std::string(key));
}

PageWriter::PageWriter(const PageRequest& request, std::string_view list)
    : list_(list), limit_(request.limit) {
  writer_.begin_object().key("items").begin_array();
}

void PageWriter::add(std::string_view key, const json::Raw& item) {
  writer_.raw(item);
  last_key_ = key;
  ++count_;
}

json::Raw PageWriter::finish(bool more) {
  writer_.end_array();
  if (more) writer_.key("nextCursor").string(encode_cursor(list_, last_key_));
  writer_.end_object();
  return writer_.finish();
}

}  // namespace fairlead::admin
