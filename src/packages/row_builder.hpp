// RowBuilder: collects the command or address of an imported server and the values to ask for, and writes the
// row. Private to the layer.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "clients/imported_server.hpp"
#include "fairlead/json/raw.hpp"

namespace fairlead::packages {

class RowBuilder {
 public:
  // Adds an input. Its name is made from `hint`, and differs from those of all other inputs unless `same_as`
  // (such as "env:NAME") was added before, whose placeholder is returned then. Returns the placeholder.
  std::string add_input(clients::ImportInput input, std::string_view hint, const std::string& same_as = {});

  // `args` and the values of variables and headers have placeholders and references; a literal `$` is
  // doubled. `inputs` are the placeholders of inputs for whose values the part exists.
  void add_argument(std::string text) { args.push_back(std::move(text)); }
  std::string argument_pointer(std::size_t index) const { return "/config/args/" + std::to_string(index); }
  std::string last_argument_pointer() const { return argument_pointer(args.size() - 1); }
  void set_variable(const std::string& name, std::string value) { env[name] = std::move(value); }
  void add_part(const std::string& placeholder, std::string pointer);
  void remark(std::string message, std::string pointer = {});

  // Returns the server. `source` is the member `source` of the row's `metadata`.
  clients::ImportedServer build(std::string name, const json::Raw& source) &&;

  std::string title;
  std::string description;
  std::string command;  // empty: `url`
  std::string url;
  std::vector<std::string> args;
  std::map<std::string, std::string> env;
  std::map<std::string, std::string> headers;
  std::string skip_reason;

 private:
  std::string unique_name(std::string_view hint) const;
  json::Raw row(const std::string& name, const json::Raw& source) const;

  std::vector<clients::ImportInput> inputs_;
  std::map<std::string, std::size_t> known_;  // indices of inputs_ by `same_as`
  std::vector<clients::Remark> remarks_;
};

// Returns a valid name of a server that is similar to the last segment of `name`.
std::string server_name_of(std::string_view name);

// Returns the JSON pointer of a member of `table` ("/config/env").
std::string member_pointer(std::string_view table, std::string_view name);

}  // namespace fairlead::packages
