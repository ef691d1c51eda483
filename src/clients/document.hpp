// Converts the text of a client's file to JSON, whatever its format. Private to the layer.
#pragma once

#include <string>
#include <string_view>

#include "clients/client.hpp"
#include "fairlead/base/result.hpp"

namespace fairlead::clients {

struct Document {
  FileFormat format = FileFormat::json;
  std::string json;  // valid, and an object
};

// Recognises the format: JSON begins with `{` or a comment, TOML or YAML is known by the path or tried. Fails
// with `validation`, and the line if it is known.
Result<Document> read_document(std::string_view text, std::string_view path);

}  // namespace fairlead::clients
