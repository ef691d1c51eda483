#include "mcp/subscriptions.hpp"

#include "fairlead/json/writer.hpp"
#include "fairlead/loop/timer.hpp"
#include "json/splice.hpp"
#include "loop/slices.hpp"

namespace fairlead::mcp {

std::string_view list_changed_method(ListKind kind) {
  switch (kind) {
    case ListKind::tools: return "notifications/tools/list_changed";
    case ListKind::prompts: return "notifications/prompts/list_changed";
    case ListKind::resources:
    case ListKind::templates: break;
  }
  return "notifications/resources/list_changed";
}

Subscription::~Subscription() {
  Loop& loop = link_->loop();
  if (!loop.in_loop_thread()) loop.post([link = std::move(link_)] {});
}

Task<void> Subscription::acknowledge(std::stop_token stop) {
  const auto self = shared_from_this();
  Loop& loop = link_->loop();
  json::Writer params;
  params.begin_object().key("notifications").begin_object();
  if (filter_.tools) params.key("toolsListChanged").boolean(true);
  if (filter_.prompts) params.key("promptsListChanged").boolean(true);
  if (filter_.resources) params.key("resourcesListChanged").boolean(true);
  if (!filter_.uris.empty()) {
    params.key("resourceSubscriptions");
    co_await write_string_array(params, filter_.uris, loop, stop);
  }
  if (!filter_.task_ids.empty()) {
    params.key("taskIds");
    co_await write_string_array(params, filter_.task_ids, loop, stop);
  }
  if (stop.stop_requested()) co_return;
  params.end_object().key("_meta").begin_object().key(kSubscriptionKey).raw(id_).end_object().end_object();
  acknowledged_ = true;
  link_->notify("notifications/subscriptions/acknowledged", params.finish(), id_);
}

// REQUIRES: `out`, `strings` and `loop` outlive the returned task.
Task<void> Subscription::write_string_array(json::Writer& out, const std::set<std::string>& strings,
                                            Loop& loop, std::stop_token stop) {
  out.begin_array();
  Slices slices;
  for (const std::string& text : strings) {
    if (stop.stop_requested()) break;
    out.string(text);
    if (slices.due(text.size())) co_await sleep_for(loop, Slices::kPause);
  }
  out.end_array();
}

void Subscription::end() {
  link_->loop().post([self = shared_from_this()] { self->ended_.set(); });
}

void Subscription::on_list_changed(ListKind kind) {
  const bool included = kind == ListKind::tools     ? filter_.tools
                        : kind == ListKind::prompts ? filter_.prompts
                                                    : filter_.resources;
  if (!included) return;
  if (!pending_changes_.add(kind)) return;
  link_->loop().post([self = shared_from_this(), kind] {
    self->pending_changes_.remove(kind);
    self->notify_client(list_changed_method(kind));
  });
}

void Subscription::on_resource_updated(const std::string& uri) {
  if (filter_.uris.contains(uri)) post_resource_updated(uri);
}

void Subscription::post_resource_updated(const std::string& uri) {
  if (!pending_changes_.add(uri, link_->posted_bytes(), log_)) return;
  link_->loop().post([self = shared_from_this(), uri] {
    self->pending_changes_.remove(uri);
    self->notify_client("notifications/resources/updated", uri);
  });
}

void Subscription::on_task_changed(const std::string& id, const json::Raw& detailed_task) {
  if (!filter_.task_ids.contains(id)) return;
  json::Writer meta;
  meta.begin_object().key(kSubscriptionKey).raw(id_).end_object();
  json::Splice splice(detailed_task.bytes());
  splice.insert_member(detailed_task.text(), "_meta", meta.text());
  const json::Raw params = json::Raw::trusted(splice.joined(), detailed_task.is_one_line());
  Result<PostedBytes::Charge> charge = link_->posted_bytes().charge(params.text().size());
  if (!charge) {
    return log_.debug(
        "notification not sent",
        {{"method", "notifications/tasks"}, {"task", id}, {"reason", charge.error().message()}});
  }
  link_->loop().post([self = shared_from_this(), params, charge = std::move(*charge)]() mutable {
    charge.release();
    if (self->acknowledged_ && !self->ended_.is_set())
      self->link_->notify("notifications/tasks", params, self->id_);
  });
}

void Subscription::notify_client(std::string_view method, std::string_view uri) {
  if (!acknowledged_ || ended_.is_set()) return;
  json::Writer params;
  params.begin_object();
  if (!uri.empty()) params.key("uri").string(uri);
  params.key("_meta").begin_object().key(kSubscriptionKey).raw(id_).end_object().end_object();
  link_->notify(method, params.finish(), id_);
}

Error too_many_subscribed_resources_error() {
  return subscription_limit_error("the resources are", "max_subscribed_resources", kMaxSubscribedUris);
}

std::optional<Error> SubscriptionRegistry::check_limits(const Subscription::Filter& filter) const {
  if (open_.size() >= max_listens_)
    return subscription_limit_error("this connection is", "max_listens", max_listens_);
  if (filter.uris.size() > kMaxSubscribedUris || filter.uris.size() > max_subscribed_uris_ - uri_count_)
    return too_many_subscribed_resources_error();
  return std::nullopt;
}

SubscriptionRegistry::Registration::Registration(std::shared_ptr<SubscriptionRegistry> subscriptions,
                                                 std::shared_ptr<Subscription> subscription)
    : subscriptions_(std::move(subscriptions)),
      subscription_(std::move(subscription)),
      uri_count_(subscription_->filter().uris.size()) {
  subscriptions_->open_.insert(subscription_);
  subscriptions_->uri_count_ += uri_count_;
  if (subscriptions_->ended_) subscription_->end();
}

SubscriptionRegistry::Registration::~Registration() {
  subscriptions_->open_.erase(subscription_);
  subscriptions_->uri_count_ -= uri_count_;
}

void SubscriptionRegistry::end_if(const std::function<bool(const Principal&)>& selected) {
  for (const auto& subscription : open_) {
    if (selected(*subscription->principal())) subscription->end();
  }
}

void SubscriptionRegistry::end_all() {
  ended_ = true;
  for (const auto& subscription : open_) subscription->end();
}

}  // namespace fairlead::mcp
