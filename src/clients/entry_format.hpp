// EntryFormat: the keys of a server in a client's file, and what they mean. One description serves reading
// and writing. Private to the layer.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace fairlead::clients {

enum class Meaning : std::uint8_t {
  command,
  command_line,  // the command and its arguments in one array
  args,
  env,
  env_names,    // list: variables of the client's environment that are passed on
  env_secrets,  // list: variables whose values are in the client's keyring
  env_file,
  cwd,
  url,       // of either HTTP transport
  http_url,  // of Streamable HTTP only
  sse_url,   // of HTTP+SSE only
  headers,
  request_options,  // an object with `headers`
  env_headers,      // headers whose values are variables: {header: NAME}
  bearer_variable,  // the variable with the bearer token
  api_key,          // the bearer token
  transport,        // the type of the transport, or an object with the type and the keys of the transport
  call_timeout,
  start_timeout,
  timeouts,  // {startup, request} in milliseconds
  enabled,
  disabled,
  allow,
  deny,
  name,
  description,
};

enum class Unit : std::uint8_t { none, milliseconds, seconds };

struct KeyMeaning {
  std::string_view key;
  Meaning meaning;
  Unit unit = Unit::none;
};

// Where in an entry a client replaces references; values are flags.
enum class Position : std::uint8_t { args = 1, env = 2, headers = 4, url = 8 };
inline constexpr std::uint8_t kAllPositions = 15;

// The forms of references that a client replaces by values.
struct VariableSyntax {
  bool plain = false;     // ${NAME}
  bool defaults = false;  // ${NAME:-default}
  bool dollar = false;    // $NAME
  bool percent = false;   // %NAME%
  bool env = false;       // ${env:NAME}
  bool file = false;      // ${file:/path}
  bool secret = false;    // ${secret:NAME}, only the gateway's own
  bool editor = false;    // ${workspaceFolder}, ${userHome}, ${config:…} and so on
  bool inputs = false;    // ${input:id}
  bool braces = false;    // {env:NAME} and {file:path}
  bool mustache = false;  // ${{ secrets.NAME }} and ${{ inputs.NAME }}
  std::uint8_t positions = kAllPositions;

  // Returns the forms that are replaced at a position.
  constexpr VariableSyntax at(Position position) const noexcept {
    return (positions & static_cast<std::uint8_t>(position)) != 0 ? *this : VariableSyntax();
  }
  bool any() const noexcept {
    return plain || dollar || percent || env || file || secret || editor || inputs || braces || mustache;
  }
};

// The words of a client for the transports; empty: not written.
struct TransportWords {
  std::string_view stdio;
  std::string_view http;
  std::string_view sse;
};

struct EntryFormat {
  // Of several keys with the same meaning the first is written.
  std::span<const KeyMeaning> keys;
  TransportWords words;
  VariableSyntax variables;
  bool url_is_sse = false;  // a `url` without a type is HTTP+SSE
  bool has_sse = true;      // the client connects to HTTP+SSE servers

  // Returns the key that is written for a meaning; nullptr if the client has none.
  const KeyMeaning* key_for(Meaning meaning) const noexcept;
};

// Returns the meaning of a key: that of the client, or one that many clients have in common. nullptr:
// unknown.
const KeyMeaning* meaning_of(const EntryFormat& format, std::string_view key) noexcept;

// For a file whose client is not known: the keys and references of most clients.
const EntryFormat& generic_format() noexcept;

}  // namespace fairlead::clients
