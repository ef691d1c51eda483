#include "fairlead/protocol/call_facts.hpp"

#include <span>

#include "fairlead/protocol/list_limits.hpp"
#include "fairlead/rpc/codes.hpp"
#include "json/walk.hpp"
#include "protocol/envelope.hpp"
#include "protocol/header_values.hpp"

namespace fairlead::mcp {

namespace {

// A member to be collected.
struct FactKey {
  std::string_view name;
  json::View CallFacts::*value;
};
constexpr FactKey kParamsFacts[] = {
    {"name", &CallFacts::name},
    {"arguments", &CallFacts::arguments},
    {"_meta", &CallFacts::meta},
    {"uri", &CallFacts::uri},
    {"taskId", &CallFacts::task_id},
    {"cursor", &CallFacts::cursor},
    {"ref", &CallFacts::ref},
    {"task", &CallFacts::task},
    {"inputResponses", &CallFacts::input_responses},
    {"requestState", &CallFacts::request_state},
};
constexpr FactKey kRefFacts[] = {
    {"type", &CallFacts::ref_type},
    {"name", &CallFacts::ref_name},
    {"uri", &CallFacts::ref_uri},
};
constexpr FactKey kMetaFacts[] = {
    {"progressToken", &CallFacts::progress_token}, {kVersionKey, &CallFacts::protocol_version},
    {kClientInfoKey, &CallFacts::client_info},     {kCapabilitiesKey, &CallFacts::client_capabilities},
    {kLogLevelKey, &CallFacts::log_level},         {"traceparent", &CallFacts::traceparent},
    {"tracestate", &CallFacts::tracestate},        {"baggage", &CallFacts::baggage},
};
constexpr FactKey kCapabilitiesFacts[] = {{"extensions", &CallFacts::extensions}};

constexpr std::size_t kMaxMembers = ListLimits().max_message_members;
constexpr std::size_t kLongestKey = kCapabilitiesKey.size();
constexpr std::size_t kMaxEscape = 6;  // bytes of an escape, for each byte that it stands for
constexpr std::size_t kMaxTarget = kMaxEscape * ListLimits().max_uri_bytes;

Error too_many(std::string_view what) {
  return rpc::invalid_params(std::string(what) + " has more than max_message_members (" +
                             std::to_string(kMaxMembers) + ")");
}

Error repeated(std::string_view what, std::string_view key) {
  return rpc::invalid_params(std::string(what) + ": `" + std::string(key) + "` is repeated");
}

}  // namespace

// Fills in the facts of one message.
class CallFactsReader {
 public:
  explicit CallFactsReader(CallFacts& facts) : facts_(facts) {}

  void read(const rpc::Message& message) {
    if (message.members().count() > kMaxMembers) return refuse(too_many("params"));
    message.members().each(facts_.params.text(),
                           [&](std::string_view key, bool escaped, std::string_view value) {
                             return collect("params", kParamsFacts, key, escaped, value);
                           });
    walk("_meta", facts_.meta, kMetaFacts);
    walk("clientCapabilities", facts_.client_capabilities, kCapabilitiesFacts);
    walk("ref", facts_.ref, kRefFacts);
  }

 private:
  void walk(std::string_view what, json::View object, std::span<const FactKey> keys) {
    if (facts_.problem_ || !object.is(json::Type::object)) return;
    std::size_t count = 0;
    json::walk_members(object.text(), [&](std::string_view key, bool escaped, std::string_view value) {
      if (++count > kMaxMembers) refuse(too_many(what));
      return !facts_.problem_ && collect(what, keys, key, escaped, value);
    });
  }

  // False after a problem.
  bool collect(std::string_view what, std::span<const FactKey> keys, std::string_view key, bool escaped,
               std::string_view value) {
    if (escaped) return collect_escaped(what, keys, key, value);
    for (const FactKey& known : keys) {
      if (known.name != key) continue;
      json::View& found = facts_.*known.value;
      if (!found.absent()) refuse(repeated(what, key));
      found = json::View(value);
      break;
    }
    return !facts_.problem_;
  }
  bool collect_escaped(std::string_view what, std::span<const FactKey> keys, std::string_view key,
                       std::string_view value) {
    return key.size() > kMaxEscape * kLongestKey || collect(what, keys, json::unescape(key), false, value);
  }

  void refuse(Error problem) { facts_.problem_ = std::move(problem); }

  CallFacts& facts_;
};

std::shared_ptr<const CallFacts> CallFacts::of(const rpc::Message& message) {
  auto attached = std::dynamic_pointer_cast<const CallFacts>(message.annotation());
  return attached ? attached : std::make_shared<const CallFacts>(message);
}

void CallFacts::attach(rpc::Message& message) {
  message.annotate(std::make_shared<const CallFacts>(message));
}

CallFacts::CallFacts(const rpc::Message& message)
    : method(message.method()), params(message.params_text()), frame_(message.frame()) {
  if (params.is(json::Type::object)) CallFactsReader(*this).read(message);
  if (!problem_) find_target();
}

void CallFacts::find_target() {
  if (method == "completion/complete") {
    about_resource_ = ref_type.as_string() == "ref/resource";
    target_ = about_resource_ ? ref_uri : ref_name;
  } else {
    const std::string_view member = named_by(method);
    about_resource_ = member == "uri";
    target_ = about_resource_ ? uri : member == "name" ? name : member == "taskId" ? task_id : json::View();
  }
  const bool escaped = target_.is(json::Type::string) && target_.text().size() <= kMaxTarget &&
                       target_.text().find('\\') != std::string_view::npos;
  if (escaped) unescaped_target_ = *target_.as_string();
}

std::optional<std::string_view> CallFacts::target_text() const noexcept {
  if (!target_.is(json::Type::string)) return std::nullopt;
  if (!unescaped_target_.empty()) return unescaped_target_;
  return target_.text().substr(1, target_.text().size() - 2);
}

}  // namespace fairlead::mcp
