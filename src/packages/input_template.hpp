// InputTemplate: an Input of a server.json (an argument, a variable, a header or part of a URL) as a text
// with placeholders. Private to the layer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "clients/imported_server.hpp"
#include "fairlead/json/view.hpp"
#include "packages/row_builder.hpp"

namespace fairlead::packages {

// The text of an input, and the placeholders in it.
struct InputText {
  std::string text;
  std::vector<std::string> placeholders;
};

// Returns the fixed value of `input` with its {variables}, or a placeholder for a value to ask for. `hint` is
// for the name of the new input, `same_as` for one that occurs several times (RowBuilder::add_input()).
InputText resolve_input(RowBuilder& row, json::View input, std::string_view hint,
                        const std::string& same_as = {});

// Replaces {name} in `text` by the inputs in `variables`; other braces stay. A `$` is doubled. If `required`,
// the variables need values.
InputText resolve_template(RowBuilder& row, std::string_view text, json::View variables,
                           const std::string& scope, bool required);

// Returns a member of a document; `key` is in camel case. Old documents have it in snake case.
json::View document_member(json::View object, std::string_view key);
std::string text_member(json::View object, std::string_view key);
bool flag_member(json::View object, std::string_view key);

}  // namespace fairlead::packages
