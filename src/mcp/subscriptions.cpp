#include "mcp/subscriptions.hpp"

#include "fairlead/json/writer.hpp"
#include "fairlead/loop/timer.hpp"
#include "json/splice.hpp"
#include "loop/slices.hpp"

namespace fairlead::mcp {

std::string_view changed_method(ListKind kind) {
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
  if (!loop.here()) loop.post([link = std::move(link_)] {});
}

Task<void> Subscription::acknowledge(std::stop_token stop) {
  const auto self = shared_from_this();
  Loop& loop = link_->loop();
  json::Writer params;
  params.begin_object().key("notifications").begin_object();
  if (wanted_.tools) params.key("toolsListChanged").boolean(true);
  if (wanted_.prompts) params.key("promptsListChanged").boolean(true);
  if (wanted_.resources) params.key("resourcesListChanged").boolean(true);
  if (!wanted_.uris.empty()) {
    params.key("resourceSubscriptions");
    Task<void> writing = write_array(params, wanted_.uris, loop, stop);
    co_await writing;
  }
  if (!wanted_.tasks.empty()) {
    params.key("taskIds");
    Task<void> writing = write_array(params, wanted_.tasks, loop, stop);
    co_await writing;
  }
  if (stop.stop_requested()) co_return;
  params.end_object().key("_meta").begin_object().key(kSubscriptionKey).raw(id_).end_object().end_object();
  acknowledged_ = true;
  link_->notify("notifications/subscriptions/acknowledged", params.finish(), id_);
}

// The caller keeps `out`, `strings` and `loop`.
Task<void> Subscription::write_array(json::Writer& out, const std::set<std::string>& strings, Loop& loop,
                                     std::stop_token stop) {
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

void Subscription::list_changed(ListKind kind) {
  const bool wants = kind == ListKind::tools     ? wanted_.tools
                     : kind == ListKind::prompts ? wanted_.prompts
                                                 : wanted_.resources;
  if (!wants) return;
  if (!pending_.add(kind)) return;
  link_->loop().post([self = shared_from_this(), kind] {
    self->pending_.take(kind);
    self->tell(changed_method(kind));
  });
}

void Subscription::resource_updated(const std::string& uri) {
  if (wanted_.uris.contains(uri)) part_updated(uri);
}

void Subscription::part_updated(const std::string& uri) {
  if (!pending_.add(uri, link_->posted(), log_)) return;
  link_->loop().post([self = shared_from_this(), uri] {
    self->pending_.take(uri);
    self->tell("notifications/resources/updated", uri);
  });
}

void Subscription::task_changed(const std::string& id, const json::Raw& detailed) {
  if (!wanted_.tasks.contains(id)) return;
  json::Writer meta;
  meta.begin_object().key(kSubscriptionKey).raw(id_).end_object();
  json::Splice splice(detailed.bytes());
  splice.insert_member(detailed.text(), "_meta", meta.text());
  const json::Raw params = json::Raw::trusted(splice.joined(), detailed.one_line());
  Result<PostedBytes::Charge> charge = link_->posted().charge(params.text().size());
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

void Subscription::tell(std::string_view method, std::string_view uri) {
  if (!acknowledged_ || ended_.is_set()) return;
  json::Writer params;
  params.begin_object();
  if (!uri.empty()) params.key("uri").string(uri);
  params.key("_meta").begin_object().key(kSubscriptionKey).raw(id_).end_object().end_object();
  link_->notify(method, params.finish(), id_);
}

Error too_many_resources() {
  return subscription_limit_error("the resources are", "max_subscribed_resources", kMostUris);
}

std::optional<Error> Subscriptions::refusal(const Subscription::Wanted& wanted) const {
  if (open_.size() >= most_) return subscription_limit_error("this connection is", "max_listens", most_);
  if (wanted.uris.size() > kMostUris || wanted.uris.size() > most_uris_ - uris_) return too_many_resources();
  return std::nullopt;
}

Subscriptions::Place::Place(std::shared_ptr<Subscriptions> all, std::shared_ptr<Subscription> one)
    : all_(std::move(all)), one_(std::move(one)), uris_(one_->wanted().uris.size()) {
  all_->open_.insert(one_);
  all_->uris_ += uris_;
  if (all_->ended_) one_->end();
}

Subscriptions::Place::~Place() {
  all_->open_.erase(one_);
  all_->uris_ -= uris_;
}

void Subscriptions::end_all() {
  ended_ = true;
  for (const auto& one : open_) one->end();
}

}  // namespace fairlead::mcp
