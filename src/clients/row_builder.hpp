// Builds the row of a server from the draft of an entry. Private to the layer.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "clients/draft.hpp"
#include "clients/entry_format.hpp"
#include "clients/imported_server.hpp"
#include "clients/read.hpp"
#include "fairlead/json/writer.hpp"

namespace fairlead::clients {

// What is the same for all entries of a file.
struct FileContext {
  FileContext(const EntryFormat& format_of_file, std::string_view id, const ReadOptions& read_options)
      : format(format_of_file), format_id(id), options(read_options) {}

  const EntryFormat& format;
  std::string_view format_id;
  const ReadOptions& options;
  std::map<std::string, ImportInput, std::less<>> inputs;  // that the file declares, by their ids there
};

// Fills `server.row` (except that its name is `row_name`), the remarks and the inputs; or the skip_reason.
void build_row(Draft draft, const std::string& row_name, const FileContext& context, ImportedServer& server);

// Checks a row as the registry does. Members that are only for people and that the registry does not accept
// are removed, with a remark. Fails if the row cannot be accepted.
Result<json::Raw> accepted_row(json::Raw row, std::vector<Remark>& remarks);

// Writes a JSON value as the registry accepts it: of members with the same name only the last, no NUL
// characters, and null for what is nested more than 32 levels deep.
void write_clean(json::Writer& out, json::View value, std::size_t depth = 0);

}  // namespace fairlead::clients
