// fill_inputs(): puts the values that a user gave for the inputs of an imported server into its row. Private
// to the library.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "clients/imported_server.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/json/raw.hpp"

namespace fairlead::clients {

// Values by the names of inputs. For a secret input only whether there is a value matters: the row keeps its
// ${secret:NAME}, and the caller stores the value.
using InputValues = std::map<std::string, std::vector<std::string>, std::less<>>;

// Returns `server.row` with the placeholders in its `config` replaced by the values, or by the defaults of
// inputs without a value. Values are literal: a `$` in them does not begin a reference. A required secret
// without a value keeps its placeholder. Fails with `validation` if another required input has no value, or
// a value is not one of the choices or not of the format; the message names the input.
Result<json::Raw> fill_inputs(const ImportedServer& server, const InputValues& values = InputValues());

// Returns `text` as it is written in a value that may contain references: every `$` is doubled.
std::string literal_text(std::string_view text);

}  // namespace fairlead::clients
