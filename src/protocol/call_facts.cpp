#include "fairlead/protocol/call_facts.hpp"

#include <cstring>
#include <typeinfo>
#include <utility>

#include "fairlead/base/block_cache.hpp"
#include "fairlead/protocol/list_limits.hpp"
#include "fairlead/rpc/codes.hpp"
#include "json/walk.hpp"
#include "protocol/envelope.hpp"
#include "protocol/header_values.hpp"

namespace fairlead::mcp {

namespace {

// The key of a member to collect, and the field of CallFacts for its value.
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

constexpr std::size_t kMaxMessageMembers = ListLimits().max_message_members;
constexpr std::size_t kMaxFactKeyBytes = kCapabilitiesKey.size();  // the longest key that is collected
constexpr std::size_t kMaxEscapeBytes = 6;  // \u0041: bytes of an escape per encoded byte
constexpr std::size_t kMaxTargetBytes = kMaxEscapeBytes * ListLimits().max_uri_bytes;

// Returns the field for the member `key`; null if the key is not one of kKeys. The comparisons are expanded,
// so that each compares with a name of known size.
template <const auto& kKeys>
json::View CallFacts::*field_for(std::string_view key) noexcept {
  json::View CallFacts::*field = nullptr;
  const auto assign_if_equal = [&]<std::size_t kIndex>() {
    constexpr std::string_view kName = kKeys[kIndex].name;
    if (key.size() != kName.size() || std::memcmp(key.data(), kName.data(), kName.size()) != 0) return false;
    field = kKeys[kIndex].value;
    return true;
  };
  [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    static_cast<void>((assign_if_equal.template operator()<kIndex>() || ...));
  }
  (std::make_index_sequence<std::size(kKeys)>());
  return field;
}

Error too_many_members(std::string_view object_name) {
  return rpc::invalid_params(std::string(object_name) + " has more than max_message_members (" +
                             std::to_string(kMaxMessageMembers) + ")");
}

Error repeated_key(std::string_view object_name, std::string_view key) {
  return rpc::invalid_params(std::string(object_name) + ": `" + std::string(key) + "` is repeated");
}

}  // namespace

// Collects the facts of one message.
class CallFactsReader {
 public:
  explicit CallFactsReader(CallFacts& facts) : facts_(facts) {}

  void read(const rpc::Message& message) {
    if (message.members().member_count() > kMaxMessageMembers) return set_problem(too_many_members("params"));
    message.members().each(facts_.params.text(),
                           [&](std::string_view key, bool escaped, std::string_view value) {
                             return collect<kParamsFacts>("params", key, escaped, value);
                           });
    collect_object<kMetaFacts>("_meta", facts_.meta);
    collect_object<kCapabilitiesFacts>("clientCapabilities", facts_.client_capabilities);
    collect_object<kRefFacts>("ref", facts_.ref);
  }

 private:
  template <const auto& kKeys>
  void collect_object(std::string_view object_name, json::View object) {
    if (facts_.problem_ || !object.is(json::Type::object)) return;
    std::size_t count = 0;
    json::walk_members(object.text(), [&](std::string_view key, bool escaped, std::string_view value) {
      if (++count > kMaxMessageMembers) set_problem(too_many_members(object_name));
      return !facts_.problem_ && collect<kKeys>(object_name, key, escaped, value);
    });
  }

  // Returns false if there is a problem.
  template <const auto& kKeys>
  bool collect(std::string_view object_name, std::string_view key, bool escaped, std::string_view value) {
    if (escaped) [[unlikely]]
      return collect_escaped<kKeys>(object_name, key, value);
    json::View CallFacts::*const field = field_for<kKeys>(key);
    if (field == nullptr) return true;
    json::View& found = facts_.*field;
    if (!found.absent()) {
      set_problem(repeated_key(object_name, key));
      return false;
    }
    found = json::View(value);
    return true;
  }
  template <const auto& kKeys>
  bool collect_escaped(std::string_view object_name, std::string_view key, std::string_view value) {
    return key.size() > kMaxEscapeBytes * kMaxFactKeyBytes ||
           collect<kKeys>(object_name, json::unescape(key), false, value);
  }

  void set_problem(Error problem) { facts_.problem_ = std::move(problem); }

  CallFacts& facts_;
};

std::shared_ptr<const CallFacts> CallFacts::of(const rpc::Message& message) {
  const std::shared_ptr<const rpc::Annotation>& attached = message.annotation();
  const rpc::Annotation* const annotation = attached.get();
  if (annotation && typeid(*annotation) == typeid(CallFacts))
    return std::static_pointer_cast<const CallFacts>(attached);
  return make_cached<const CallFacts>(message);
}

void CallFacts::attach(rpc::Message& message) {
  message.annotate(make_cached<const CallFacts>(message));
}

CallFacts::CallFacts(const rpc::Message& message)
    : method(message.method()), params(message.params_text()), frame_(message.frame()) {
  if (params.is(json::Type::object)) CallFactsReader(*this).read(message);
  if (!problem_) find_target();
}

void CallFacts::find_target() {
  if (method == "completion/complete") {
    targets_resource_ = ref_type.as_string() == "ref/resource";
    target_ = targets_resource_ ? ref_uri : ref_name;
  } else {
    const std::string_view member = name_header_param(method);
    targets_resource_ = member == "uri";
    target_ = targets_resource_ ? uri : member == "name" ? name : member == "taskId" ? task_id : json::View();
  }
  const bool escaped = target_.is(json::Type::string) && target_.text().size() <= kMaxTargetBytes &&
                       target_.text().find('\\') != std::string_view::npos;
  if (escaped) unescaped_target_ = *target_.as_string();
}

std::optional<std::string_view> CallFacts::target_text() const noexcept {
  if (!target_.is(json::Type::string)) return std::nullopt;
  if (!unescaped_target_.empty()) return unescaped_target_;
  return target_.text().substr(1, target_.text().size() - 2);
}

}  // namespace fairlead::mcp
