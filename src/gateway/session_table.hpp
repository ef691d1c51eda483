// SessionTable: the sessions of legacy clients. Stores for each session the context of its client, its log
// level, and its URL elicitations: requests of servers (revision 2025-11-25) that the user visit a URL.
// Private to the layer.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "fairlead/mcp/backend.hpp"

namespace fairlead::gateway {

class SessionTable {
 public:
  using ContextSource = mcp::Backend::ContextSource;

  // Adds a session whose handshake is complete.
  void add(std::string_view session, ContextSource context_source);
  void remove(std::string_view session);
  // Returns the context of the session's client; nullopt if the session is unknown or its client has
  // disconnected.
  std::optional<mcp::Context> find_client(std::string_view session) const;
  std::size_t size() const noexcept { return sessions_.size(); }

  // Returns a client capabilities object with the capabilities (roots, sampling, elicitation) that at least
  // one client has declared. Considers only the clients for which `selected` returns true.
  json::Raw combined_capabilities(const std::function<bool(const mcp::Context&)>& selected) const;

  void set_log_level(std::string_view session, mcp::LoggingLevel level);
  // Returns the least severe level that this session has set, or that any session has set if `session` is
  // empty. Returns kDefaultLogLevel if that is less severe, or if no level is set. The cost is independent of
  // the number of sessions, except for one lookup.
  mcp::LoggingLevel lowest_log_level(std::string_view session) const;

  // Records that `server` has requested the user of `session` to visit a URL; `elicitation` is the id of this
  // request. Keeps the last kMaxUrlElicitations records; ignores an id longer than
  // mcp::kMaxElicitationIdBytes.
  void add_url_elicitation(const std::string& server, const std::string& elicitation,
                           std::string_view session);
  // Returns the sessions for which add_url_elicitation() has recorded this elicitation of `server`.
  std::vector<std::string> sessions_of_url_elicitation(const std::string& server,
                                                       const std::string& elicitation) const;
  void remove_url_elicitation(const std::string& server, const std::string& elicitation,
                              const std::string& session);

  static constexpr mcp::LoggingLevel kDefaultLogLevel = mcp::LoggingLevel::info;
  static constexpr std::size_t kMaxUrlElicitations = 10'000;

 private:
  // The capabilities of a client that servers can use.
  struct ClientFeatures {
    bool roots = false;
    bool sampling = false;
    bool form_elicitation = false;
    bool url_elicitation = false;

    void add(json::View capabilities);
    void add(const ClientFeatures& other);
    json::Raw to_json() const;
  };
  struct Session {
    ContextSource context_source;
    ClientFeatures features;
  };
  using UrlElicitation = std::tuple<std::string, std::string, std::string>;  // server, elicitation, session

  void erase_log_level(std::string_view session);

  std::map<std::string, Session, std::less<>> sessions_;
  std::map<std::string, mcp::LoggingLevel, std::less<>> log_levels_;  // of the sessions that have set one
  std::map<mcp::LoggingLevel, std::size_t> session_count_by_level_;   // the counts of log_levels_; never zero
  // The values are positions in url_elicitation_order_.
  std::map<UrlElicitation, std::list<const UrlElicitation*>::iterator> url_elicitations_;
  std::list<const UrlElicitation*> url_elicitation_order_;  // oldest first
};

}  // namespace fairlead::gateway
