// Draft: one entry of a client's file, with the keys of all clients under one name each. Values are still
// those of the client: references are not translated. Private to the layer.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "clients/imported_server.hpp"
#include "fairlead/json/view.hpp"

namespace fairlead::clients {

struct Draft {
  Draft() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  using Texts = std::map<std::string, std::string>;
  enum class Transport : std::uint8_t { unknown, stdio, http, sse };

  Transport type = Transport::unknown;  // as the entry says
  std::string foreign_type;             // a type that is none of these
  std::string command;
  std::vector<std::string> args;
  Texts env;
  std::vector<std::string> env_names;
  std::vector<std::string> env_secrets;
  std::string env_file;
  std::string cwd;
  std::string url;
  bool url_is_sse = false;
  bool url_is_http = false;
  Texts headers;
  Texts env_headers;
  std::string bearer_variable;
  std::string api_key;
  bool of_bridge = false;  // the headers are those of a bridge, which expands ${NAME} itself

  std::optional<std::chrono::milliseconds> call_timeout;
  std::optional<std::chrono::milliseconds> start_timeout;
  bool enabled = true;
  std::optional<std::vector<std::string>> allow;
  std::optional<std::vector<std::string>> deny;
  std::string title;
  std::string description;

  // What has no meaning for the gateway: kept for the client. The views are those of the file.
  std::vector<std::pair<std::string, json::View>> others;
  std::vector<std::string> unset;  // names in `env` whose value is null
  std::vector<Remark> remarks;

  void remark(std::string pointer, std::string message) {
    remarks.push_back({std::move(pointer), std::move(message)});
  }
};

}  // namespace fairlead::clients
