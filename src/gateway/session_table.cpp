#include "gateway/session_table.hpp"

#include <algorithm>

#include "fairlead/json/writer.hpp"
#include "protocol/envelope.hpp"

namespace fairlead::gateway {

void SessionTable::Askable::add(json::View capabilities) {
  const json::View elicitation = capabilities["elicitation"];
  roots = roots || !capabilities["roots"].absent();
  sampling = sampling || !capabilities["sampling"].absent();
  url = url || !elicitation["url"].absent();
  // An empty object stands for forms.
  form = form || !elicitation["form"].absent() || (!elicitation.absent() && elicitation["url"].absent());
}

void SessionTable::Askable::add(const Askable& other) {
  roots = roots || other.roots;
  sampling = sampling || other.sampling;
  form = form || other.form;
  url = url || other.url;
}

json::Raw SessionTable::Askable::written() const {
  json::Writer out;
  out.begin_object();
  if (roots) out.key("roots").raw("{}");
  if (sampling) out.key("sampling").raw("{}");
  if (form || url) {
    out.key("elicitation").begin_object();
    if (form) out.key("form").raw("{}");
    if (url) out.key("url").raw("{}");
    out.end_object();
  }
  out.end_object();
  return out.finish();
}

void SessionTable::add(std::string_view session, Reach reach) {
  Askable askable;
  if (const std::optional<mcp::Context> context = reach()) askable.add(context->client_capabilities());
  sessions_.insert_or_assign(std::string(session), Session{std::move(reach), askable});
}

void SessionTable::remove(std::string_view session) {
  if (const auto found = sessions_.find(session); found != sessions_.end()) sessions_.erase(found);
  forget_level(session);
}

std::optional<mcp::Context> SessionTable::find(std::string_view session) const {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? std::nullopt : found->second.reach();
}

json::Raw SessionTable::capabilities(const std::function<bool(const mcp::Context&)>& concerns) const {
  Askable all;
  for (const auto& [id, session] : sessions_) {
    const std::optional<mcp::Context> context = session.reach();
    if (context && concerns(*context)) all.add(session.askable);
  }
  return all.written();
}

void SessionTable::set_level(std::string_view session, mcp::LoggingLevel level) {
  forget_level(session);
  levels_.emplace(session, level);
  ++sessions_at_level_[level];
}

void SessionTable::forget_level(std::string_view session) {
  const auto found = levels_.find(session);
  if (found == levels_.end()) return;
  const auto counted = sessions_at_level_.find(found->second);
  if (--counted->second == 0) sessions_at_level_.erase(counted);
  levels_.erase(found);
}

mcp::LoggingLevel SessionTable::lowest_level(std::string_view session) const {
  if (session.empty())
    return sessions_at_level_.empty() ? kDefaultLevel
                                      : std::min(kDefaultLevel, sessions_at_level_.begin()->first);
  const auto found = levels_.find(session);
  return found == levels_.end() ? kDefaultLevel : std::min(kDefaultLevel, found->second);
}

void SessionTable::note_url(const std::string& server, const std::string& elicitation,
                            std::string_view session) {
  if (session.empty()) return;  // its client cannot be told
  if (elicitation.size() > mcp::kMaxElicitationIdBytes) return;
  const auto [at, first] = urls_.try_emplace(Url(server, elicitation, session));
  if (!first) return;
  at->second = url_order_.insert(url_order_.end(), &at->first);
  if (urls_.size() <= kMaxUrls) return;
  urls_.erase(urls_.find(*url_order_.front()));
  url_order_.pop_front();
}

std::vector<std::string> SessionTable::sessions_at_url(const std::string& server,
                                                       const std::string& elicitation) const {
  std::vector<std::string> sessions;
  for (auto at = urls_.lower_bound(Url(server, elicitation, "")); at != urls_.end(); ++at) {
    const auto& [of_server, of_elicitation, session] = at->first;
    if (of_server != server || of_elicitation != elicitation) break;
    sessions.push_back(session);
  }
  return sessions;
}

void SessionTable::forget_url(const std::string& server, const std::string& elicitation,
                              const std::string& session) {
  const auto found = urls_.find(Url(server, elicitation, session));
  if (found == urls_.end()) return;
  url_order_.erase(found->second);
  urls_.erase(found);
}

}  // namespace fairlead::gateway
