#include "mcp/request_params.hpp"

#include <array>
#include <utility>

#include "fairlead/json/writer.hpp"
#include "fairlead/loop/timer.hpp"
#include "json/splice.hpp"
#include "json/walk.hpp"
#include "loop/slices.hpp"

namespace fairlead::mcp {

void RequestParams::store_member(std::string_view key, bool escaped, std::string_view value) {
  const std::array<std::pair<std::string_view, json::View*>, 4> wanted = {
      {{"name", &name_}, {"task", &task_}, {"cursor", &cursor_}, {"_meta", &meta_}}};
  for (const auto& [name, found] : wanted) {
    if (json::key_equals(key, escaped, name)) *found = json::View(value);
  }
}

RequestParams::RequestParams(json::Raw params) : raw_(std::move(params)) {
  view().each_member([this](std::string_view key, bool escaped, json::View value) {
    store_member(key, escaped, value.text());
    return true;
  });
}

Task<RequestParams> RequestParams::read(Loop& loop, json::Raw params) {
  if (params.text().size() <= Slices::kBytesPerSlice) co_return RequestParams(std::move(params));
  RequestParams read;
  read.raw_ = std::move(params);
  if (!read.view().is(json::Type::object)) co_return read;
  Slices slices;
  json::MemberWalk walk(read.view().text());
  while (walk.next()) {
    read.store_member(walk.key(), walk.escaped(), walk.value());
    if (slices.due(walk.value().size())) co_await sleep_for(loop, Slices::kPause);
  }
  co_return read;
}

RequestParams RequestParams::of_tool_call(std::string_view name, const json::Raw& arguments) {
  constexpr std::string_view kBegin = "{\"name\":";
  std::string quoted;
  json::append_string(quoted, name);
  const std::string_view key = arguments.absent() ? "" : ",\"arguments\":";
  RequestParams params;
  params.raw_ =
      json::Raw::trusted(Bytes::join(kBegin, quoted, key, arguments.text(), "}"), arguments.is_one_line());
  params.name_ = json::View(params.raw_.text().substr(kBegin.size(), quoted.size()));
  return params;
}

RequestParams RequestParams::with_task(std::string_view task) const {
  json::Splice splice(raw_.bytes());
  splice.insert_member(view().text(), "task", task);
  RequestParams params;
  params.raw_ = json::Raw::trusted(splice.joined(), raw_.is_one_line());
  // The member is appended, so the other members keep their offsets.
  const auto moved = [&](json::View part) {
    if (part.absent()) return part;
    const auto at = static_cast<std::size_t>(part.text().data() - raw_.text().data());
    return json::View(params.raw_.text().substr(at, part.text().size()));
  };
  params.name_ = moved(name_);
  params.cursor_ = moved(cursor_);
  params.meta_ = moved(meta_);
  return params;
}

}  // namespace fairlead::mcp
