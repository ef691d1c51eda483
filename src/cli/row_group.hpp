// Commands that are the same for several kinds of rows: list, show and remove.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/admin_command.hpp"

namespace fairlead::cli {

// `Rows` has static RowType type().
template <class Rows>
struct ListCommand {
  AdminOptions options;

  void add_to(CLI::App&) {}
  static Task<Result<int>> run(const ListCommand& command, AdminClientPtr client) {
    return list_rows(command.options, Rows::type(), std::move(client), std::string());
  }
};

template <class Rows>
struct ShowCommand {
  AdminOptions options;
  std::string name;

  void add_to(CLI::App& app) {
    app.add_option("NAME", name, "Name or id of the " + Rows::type().noun)->required();
  }
  static Task<Result<int>> run(const ShowCommand& command, AdminClientPtr client) {
    return show_row(command.options, Rows::type(), std::move(client), command.name);
  }
};

template <class Rows>
struct RemoveCommand {
  AdminOptions options;
  std::vector<std::string> names;

  void add_to(CLI::App& app) {
    app.add_option("NAME", names, "Names or ids of the " + Rows::type().plural)->required();
    options.add_yes_to(app);
  }
  static Task<Result<int>> run(const RemoveCommand& command, AdminClientPtr client) {
    return remove_rows(command.options, Rows::type(), std::move(client), command.names);
  }
};

// `Fields` has void add_to(CLI::App&), bool empty() const, and
// static Task<Result<json::Raw>> body(const Fields&, AdminClientPtr, std::string name): the body of a POST,
// or a merge patch if `name` is empty.
template <class Rows, class Fields>
struct AddCommand {
  AdminOptions options;
  std::string name;
  Fields fields;

  void add_to(CLI::App& app) {
    app.add_option("NAME", name,
                   "Name of the " + Rows::type().noun + ", or - to read the row as JSON from stdin")
        ->required();
    fields.add_to(app);
  }
  static Task<Result<int>> run(const AddCommand& command, AdminClientPtr client) {
    if (command.name == "-") {
      const Result<json::Raw> given = parse_json_argument("stdin", "-");
      if (!given) co_return given.error();
      const Result<int> stored = co_await add_row(command.options, Rows::type(), client, *given);
      co_return stored;
    }
    const Result<json::Raw> body = co_await Fields::body(command.fields, client, command.name);
    if (!body) co_return body.error();
    const Result<int> added = co_await add_row(command.options, Rows::type(), client, *body);
    co_return added;
  }
};

template <class Rows, class Fields>
struct EditCommand {
  AdminOptions options;
  std::string name;
  std::string input;
  Fields fields;

  void add_to(CLI::App& app) {
    app.add_option("NAME", name, "Name or id of the " + Rows::type().noun)->required();
    app.add_option("INPUT", input, "- to read a merge patch (RFC 7396) as JSON from stdin")
        ->check(CLI::IsMember({"-"}));
    fields.add_to(app);
    app.footer("Without options, the row is opened in $EDITOR.");
  }
  static Task<Result<int>> run(const EditCommand& command, AdminClientPtr client) {
    if (command.fields.empty() && command.input.empty()) {
      const Result<int> edited = co_await edit_row(command.options, Rows::type(), client, command.name);
      co_return edited;
    }
    const bool from_stdin = !command.input.empty();
    Result<json::Raw> patch = from_stdin ? parse_json_argument("stdin", "-") : json::Raw();
    if (!from_stdin) patch = co_await Fields::body(command.fields, client, std::string());
    if (!patch) co_return patch.error();
    const Result<int> changed =
        co_await patch_row(command.options, Rows::type(), client, command.name, *patch);
    co_return changed;
  }
};

// Returns the noun of a row with its article: "a user", "an endpoint".
inline std::string with_article(const std::string& noun) {
  return (noun.starts_with('e') ? "an " : "a ") + noun;
}

template <class Rows, class Fields, class Add = AddCommand<Rows, Fields>>
void add_row_group(CLI::App& group, int& status) {
  const RowType type = Rows::type();
  add_admin_command<ListCommand<Rows>>(group, "list", "List the " + type.plural, status);
  add_admin_command<ShowCommand<Rows>>(group, "show", "Show " + with_article(type.noun), status);
  add_admin_command<Add>(group, "add", "Add " + with_article(type.noun), status);
  add_admin_command<EditCommand<Rows, Fields>>(group, "edit", "Change " + with_article(type.noun), status);
  add_admin_command<RemoveCommand<Rows>>(group, "remove", "Remove " + type.plural, status);
}

}  // namespace fairlead::cli
