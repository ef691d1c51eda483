// SessionTable: the sessions of legacy clients: how to speak to each, the log level it set, and which URLs
// its user was sent to (2025-11-25). Private to the layer.
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
  using Reach = mcp::Backend::Reach;

  // A client whose handshake is done.
  void add(std::string_view session, Reach reach);
  void remove(std::string_view session);
  // The way to its client; nullopt if the session is unknown or its client is gone.
  std::optional<mcp::Context> find(std::string_view session) const;
  std::size_t size() const noexcept { return sessions_.size(); }

  // The union of what the clients that `concerns` picks can be asked for: roots, sampling and elicitation, as
  // an object of client capabilities.
  json::Raw capabilities(const std::function<bool(const mcp::Context&)>& concerns) const;

  void set_level(std::string_view session, mcp::LoggingLevel level);
  // The least severe level that this session, or any if it is empty, has set; kDefaultLevel if that is lower.
  // The cost does not depend on the number of sessions but for one look-up of this session.
  mcp::LoggingLevel lowest_level(std::string_view session) const;

  // The user of `session` was sent to a URL by `server`. The last kMaxUrls are remembered; one whose
  // elicitation has a longer id than mcp::kMaxElicitationIdBytes is not.
  void note_url(const std::string& server, const std::string& elicitation, std::string_view session);
  // The sessions whose users `server` sent to the URL of this elicitation.
  std::vector<std::string> sessions_at_url(const std::string& server, const std::string& elicitation) const;
  void forget_url(const std::string& server, const std::string& elicitation, const std::string& session);

  static constexpr mcp::LoggingLevel kDefaultLevel = mcp::LoggingLevel::info;
  static constexpr std::size_t kMaxUrls = 10'000;

 private:
  // What clients can be asked for.
  struct Askable {
    bool roots = false;
    bool sampling = false;
    bool form = false;  // elicitation
    bool url = false;

    void add(json::View capabilities);
    void add(const Askable& other);
    json::Raw written() const;
  };
  struct Session {
    Reach reach;
    Askable askable;
  };
  using Url = std::tuple<std::string, std::string, std::string>;  // server, elicitation, session

  void forget_level(std::string_view session);

  std::map<std::string, Session, std::less<>> sessions_;
  std::map<std::string, mcp::LoggingLevel, std::less<>> levels_;  // of those that set one
  std::map<mcp::LoggingLevel, std::size_t> sessions_at_level_;    // how many of levels_; none is zero
  std::map<Url, std::list<const Url*>::iterator> urls_;           // with their places in url_order_
  std::list<const Url*> url_order_;                               // oldest first
};

}  // namespace fairlead::gateway
