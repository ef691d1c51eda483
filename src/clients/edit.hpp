// Edits one entry in the configuration file of an MCP client. Everything else in the text stays as it is,
// byte for byte: unknown keys, comments, order, indentation and line ends. Pure functions from text to text.
// Private to the library.
#pragma once

#include <string>
#include <string_view>

#include "clients/client.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/json/raw.hpp"

namespace fairlead::clients {

struct Entry {
  std::string name;
  json::Raw value;  // as the client has it, an object; in a list (Client::is_list) without the name
};

// Returns the entry `name` of the file as JSON, without its name; absent if there is none. Fails with
// `validation` and the line if the text cannot be parsed.
Result<json::Raw> find_entry(const Client& client, std::string_view text, std::string_view name);

// Returns the text with the entry. If there is one with this name, the keys that say how to connect are
// replaced, and other keys of the entry are kept. Creates the container, and the content of an empty file.
// Returns the same text if the entry is already right. Fails with `validation`: the text cannot be parsed,
// or cannot be changed safely; then the remedy is what to add by hand. Every result is parsed again and
// compared with what was there before.
Result<std::string> put_entry(const Client& client, std::string_view text, const Entry& entry);

// Returns the text without the entry; the same text if there is none. Fails like put_entry().
Result<std::string> remove_entry(const Client& client, std::string_view text, std::string_view name);

// Returns what a new file of the client must contain besides its servers; usually nothing.
std::string new_file_text(const Client& client);

// Returns the entry as it is written into a file of the client that has nothing else, for messages.
std::string entry_text(const Client& client, const Entry& entry);

}  // namespace fairlead::clients
