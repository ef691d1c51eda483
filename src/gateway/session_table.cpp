#include "gateway/session_table.hpp"

#include <algorithm>

#include "fairlead/json/writer.hpp"
#include "protocol/envelope.hpp"

namespace fairlead::gateway {

void SessionTable::ClientFeatures::add(json::View capabilities) {
  const json::View elicitation = capabilities["elicitation"];
  roots = roots || !capabilities["roots"].absent();
  sampling = sampling || !capabilities["sampling"].absent();
  url_elicitation = url_elicitation || !elicitation["url"].absent();
  // An empty `elicitation` object declares form mode.
  form_elicitation = form_elicitation || !elicitation["form"].absent() ||
                     (!elicitation.absent() && elicitation["url"].absent());
}

void SessionTable::ClientFeatures::add(const ClientFeatures& other) {
  roots = roots || other.roots;
  sampling = sampling || other.sampling;
  form_elicitation = form_elicitation || other.form_elicitation;
  url_elicitation = url_elicitation || other.url_elicitation;
}

json::Raw SessionTable::ClientFeatures::to_json() const {
  json::Writer out;
  out.begin_object();
  if (roots) out.key("roots").raw("{}");
  if (sampling) out.key("sampling").raw("{}");
  if (form_elicitation || url_elicitation) {
    out.key("elicitation").begin_object();
    if (form_elicitation) out.key("form").raw("{}");
    if (url_elicitation) out.key("url").raw("{}");
    out.end_object();
  }
  out.end_object();
  return out.finish();
}

void SessionTable::add(std::string_view session, ContextSource context_source) {
  ClientFeatures features;
  if (const std::optional<mcp::Context> context = context_source())
    features.add(context->client_capabilities());
  sessions_.insert_or_assign(std::string(session), Session{std::move(context_source), features});
}

void SessionTable::remove(std::string_view session) {
  if (const auto found = sessions_.find(session); found != sessions_.end()) sessions_.erase(found);
  erase_log_level(session);
}

std::optional<mcp::Context> SessionTable::find_client(std::string_view session) const {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? std::nullopt : found->second.context_source();
}

json::Raw SessionTable::combined_capabilities(
    const std::function<bool(const mcp::Context&)>& selected) const {
  ClientFeatures all;
  for (const auto& [id, session] : sessions_) {
    const std::optional<mcp::Context> context = session.context_source();
    if (context && selected(*context)) all.add(session.features);
  }
  return all.to_json();
}

void SessionTable::set_log_level(std::string_view session, mcp::LoggingLevel level) {
  erase_log_level(session);
  log_levels_.emplace(session, level);
  ++session_count_by_level_[level];
}

void SessionTable::erase_log_level(std::string_view session) {
  const auto found = log_levels_.find(session);
  if (found == log_levels_.end()) return;
  const auto level_count = session_count_by_level_.find(found->second);
  if (--level_count->second == 0) session_count_by_level_.erase(level_count);
  log_levels_.erase(found);
}

mcp::LoggingLevel SessionTable::lowest_log_level(std::string_view session) const {
  if (session.empty())
    return session_count_by_level_.empty()
               ? kDefaultLogLevel
               : std::min(kDefaultLogLevel, session_count_by_level_.begin()->first);
  const auto found = log_levels_.find(session);
  return found == log_levels_.end() ? kDefaultLogLevel : std::min(kDefaultLogLevel, found->second);
}

void SessionTable::add_url_elicitation(const std::string& server, const std::string& elicitation,
                                       std::string_view session) {
  if (session.empty()) return;  // a client without a session cannot be notified
  if (elicitation.size() > mcp::kMaxElicitationIdBytes) return;
  const auto [at, first] = url_elicitations_.try_emplace(UrlElicitation(server, elicitation, session));
  if (!first) return;
  at->second = url_elicitation_order_.insert(url_elicitation_order_.end(), &at->first);
  if (url_elicitations_.size() <= kMaxUrlElicitations) return;
  url_elicitations_.erase(url_elicitations_.find(*url_elicitation_order_.front()));
  url_elicitation_order_.pop_front();
}

std::vector<std::string> SessionTable::sessions_of_url_elicitation(const std::string& server,
                                                                   const std::string& elicitation) const {
  std::vector<std::string> sessions;
  for (auto at = url_elicitations_.lower_bound(UrlElicitation(server, elicitation, ""));
       at != url_elicitations_.end(); ++at) {
    const auto& [record_server, record_elicitation, session] = at->first;
    if (record_server != server || record_elicitation != elicitation) break;
    sessions.push_back(session);
  }
  return sessions;
}

void SessionTable::remove_url_elicitation(const std::string& server, const std::string& elicitation,
                                          const std::string& session) {
  const auto found = url_elicitations_.find(UrlElicitation(server, elicitation, session));
  if (found == url_elicitations_.end()) return;
  url_elicitation_order_.erase(found->second);
  url_elicitations_.erase(found);
}

}  // namespace fairlead::gateway
