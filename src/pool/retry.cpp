#include "pool/retry.hpp"

#include <algorithm>
#include <array>

#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/pool/pool.hpp"
#include "json/splice.hpp"

namespace fairlead::pool {

bool is_repeatable(std::string_view method, json::View tool) {
  static constexpr std::array<std::string_view, 10> kReadingMethods = {
      "ping",           "server/discover", "tools/list",  "resources/list",      "resources/templates/list",
      "resources/read", "prompts/list",    "prompts/get", "completion/complete", "tasks/get"};
  if (std::ranges::find(kReadingMethods, method) != kReadingMethods.end()) return true;
  if (method != "tools/call") return false;
  const json::View hints = tool["annotations"];
  return hints["readOnlyHint"].as_bool().value_or(false) || hints["idempotentHint"].as_bool().value_or(false);
}

bool is_connection_loss(const Error& error) noexcept {
  switch (error.kind()) {
    case ErrorKind::closed:
    case ErrorKind::process_exited:
    case ErrorKind::io:
    case ErrorKind::connection_failed: return true;
    default: return false;
  }
}

rpc::Message mark_retried(const rpc::Message& answer, unsigned attempts, const Error& reason) {
  const json::View result(answer.result_text());
  if (!answer.is(rpc::Kind::response) || !result.is(json::Type::object)) return answer;
  json::Writer mark;
  mark.begin_object().key("attempts").unsigned_integer(attempts);
  mark.key("reason").string(to_string(reason.kind())).end_object();
  if (answer.members().member_count() > json::MemberIndex::kMaxMembers) return answer;
  const json::View meta = answer.members().find(answer.result_text(), "_meta");
  json::Splice splice(answer.frame());
  if (meta.is(json::Type::object)) {
    splice.insert_member(meta.text(), kRetriedKey, mark.text());
  } else if (meta.absent()) {
    json::Writer fresh;
    fresh.begin_object().key(kRetriedKey).raw(mark.text()).end_object();
    splice.insert_member(result.text(), "_meta", fresh.text());
  } else {
    return answer;
  }
  return rpc::Message::parse_trusted(splice.joined(), !answer.has_line_break());
}

}  // namespace fairlead::pool
