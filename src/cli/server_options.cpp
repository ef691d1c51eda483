#include "cli/server_options.hpp"

#include <CLI/CLI.hpp>

#include "cli/patch_builder.hpp"

namespace fairlead::cli {

namespace {

void add_list(CLI::App& app, const std::string& name, std::vector<std::string>& values,
              const std::string& help, const std::string& type) {
  app.add_option(name, values, help)->type_name(type)->take_all()->allow_extra_args(false);
}

void set_text(PatchBuilder& body, const std::string& member, const std::string& value) {
  if (!value.empty()) body.set_string({member}, value);
}

void set_list(PatchBuilder& body, const std::vector<std::string>& path,
              const std::vector<std::string>& values) {
  if (!values.empty()) body.set_strings(path, values);
}

// Adds "Name: value".
Result<void> set_header(PatchBuilder& body, const std::string& header) {
  const std::size_t colon = header.find(':');
  if (colon == std::string::npos || colon == 0)
    return Error(ErrorKind::validation, "--header needs \"Name: value\"");
  const std::size_t value = header.find_first_not_of(" \t", colon + 1);
  body.set_string({"config", "headers", header.substr(0, colon)},
                  value == std::string::npos ? std::string() : header.substr(value));
  return {};
}

// A new command replaces the URL of a server, and the other way round.
void set_transport(PatchBuilder& body, const ServerOptions& options, bool creating) {
  if (!options.url.empty()) {
    body.set_string({"config", "url"}, options.url);
    if (creating) return;
    body.set_string({"transport"}, "http");
    for (const char* const key : {"transport", "command", "args", "env", "cwd"}) body.remove({"config", key});
  }
  if (options.command.empty()) return;
  body.set_string({"config", "command"}, options.command.front());
  const std::vector<std::string> arguments(options.command.begin() + 1, options.command.end());
  if (!arguments.empty() || !creating) body.set_strings({"config", "args"}, arguments);
  if (creating) return;
  body.set_string({"transport"}, "stdio");
  for (const char* const key : {"transport", "url", "headers"}) body.remove({"config", key});
}

}  // namespace

void ServerOptions::add_to(CLI::App& app) {
  app.add_option(
      "COMMAND", command,
      "Program of the server and its arguments, after --; or - to read the row as JSON from stdin");
  app.add_option("--url", url, "URL of a server that runs elsewhere, instead of COMMAND");
  add_list(app, "--env", environment, "A variable of the server's environment; repeatable", "NAME=VALUE");
  add_list(app, "--header", headers, "A header for every request to the URL; repeatable", "\"NAME: VALUE\"");
  app.add_option("--cwd", cwd, "Working directory of the server")->type_name("DIRECTORY");
  app.add_option("--title", title, "Title for people");
  app.add_option("--description", description, "What the server is for");
  app.add_option("--domain", domain, "Subject area, by which tools are found");
  add_list(app, "--tag", tags, "A label; repeatable", "TAG");
  app.add_option("--visibility", visibility,
                 "Who sees the server: only administrators, every client, or its owner")
      ->check(CLI::IsMember({"hidden", "visible", "user"}));
  app.add_flag("--hidden", hidden, "Only administrators see the server, as --visibility hidden");
  app.add_option("--owner", owner, "The user to whom the server belongs")->type_name("USER");
  app.add_flag("--disabled", disabled, "Do not offer the server");
  app.add_option("--drift", drift, "What happens to changed tools")
      ->check(CLI::IsMember({"accept", "flag", "quarantine"}));
  add_list(app, "--allow-tool", allow, "Offer only tools that match; repeatable", "PATTERN");
  add_list(app, "--deny-tool", deny, "Do not offer tools that match; repeatable", "PATTERN");
  add_list(app, "--hide-tool", hide, "Do not list tools that match; repeatable", "PATTERN");
  add_list(app, "--set", set, "Any other member, such as config.clocks.idle=60s; repeatable", "MEMBER=VALUE");
  add_list(app, "--unset", unset, "Remove a member, such as config.env.DEBUG; repeatable", "MEMBER");
}

bool ServerOptions::empty() const {
  const std::string texts = url + title + description + domain + visibility + owner + drift + cwd;
  const std::size_t entries = command.size() + environment.size() + headers.size() + tags.size() +
                              allow.size() + deny.size() + hide.size() + set.size() + unset.size();
  return texts.empty() && entries == 0 && !hidden && !disabled;
}

Result<json::Raw> ServerOptions::body(const std::string& name) const {
  if (!command.empty() && !url.empty())
    return Error(ErrorKind::validation, "give either a COMMAND or a --url");
  if (!name.empty() && command.empty() && url.empty() && set.empty())
    return Error(ErrorKind::validation, "what the server is is missing: `fairlead servers add " + name +
                                            " -- COMMAND ARG…` or `fairlead servers add " + name +
                                            " --url URL`");
  PatchBuilder body;
  set_text(body, "name", name);
  set_text(body, "title", title);
  set_text(body, "description", description);
  set_text(body, "domain", domain);
  set_text(body, "visibility", hidden ? "hidden" : visibility);
  set_text(body, "owner", owner);
  set_text(body, "drift", drift);
  set_list(body, {"tags"}, tags);
  set_list(body, {"tools", "allow"}, allow);
  set_list(body, {"tools", "deny"}, deny);
  set_list(body, {"tools", "hide"}, hide);
  if (disabled) body.set({"enabled"}, json::Raw::trusted(Bytes::constant("false"), true));
  set_transport(body, *this, !name.empty());
  if (!cwd.empty()) body.set_string({"config", "cwd"}, cwd);
  for (const std::string& pair : environment) {
    if (const Result<void> added = body.set_pair({"config", "env"}, "--env", pair); !added)
      return added.error();
  }
  for (const std::string& header : headers) {
    if (const Result<void> added = set_header(body, header); !added) return added.error();
  }
  for (const std::string& assignment : set) {
    if (const Result<void> added = body.set_assignment("--set", assignment); !added) return added.error();
  }
  for (const std::string& member : unset) body.remove(split_member_path(member));
  return body.finish();
}

}  // namespace fairlead::cli
