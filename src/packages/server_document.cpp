#include "packages/server_document.hpp"

#include <algorithm>

#include "fairlead/json/writer.hpp"
#include "packages/input_template.hpp"

namespace fairlead::packages {

namespace {

Error document_error(std::string message) {
  return Error(ErrorKind::validation, std::move(message));
}

bool is_description(json::View object) {
  return object["name"].is(json::Type::string) &&
         (object["packages"].is(json::Type::array) || object["remotes"].is(json::Type::array) ||
          object["$schema"].as_string().value_or("").contains("server.schema.json"));
}

// The description in an answer of a registry.
Result<json::View> find_description(json::View document) {
  if (document["server"].is(json::Type::object)) return document["server"];
  const json::View servers = document["servers"];
  const json::View wrapped = servers[std::size_t{0}]["server"];
  if (!servers.is(json::Type::array) || !wrapped.is(json::Type::object)) return document;
  const std::size_t count = servers.size();
  if (count != 1)
    return document_error("the list has " + std::to_string(count) +
                          " servers: use the document of one of them");
  return wrapped;
}

json::Raw source_of(const ServerDocument& document, std::string_view kind, json::View value) {
  json::Writer out;
  out.begin_object().key("format").string("server.json").key("name").string(document.name);
  out.key("version").string(document.version).key(kind).raw(value.text()).end_object();
  return out.finish();
}

std::string command_line(const RowBuilder& row) {
  std::string line = row.command;
  for (const std::string& argument : row.args) line.append(" ").append(argument);
  return line;
}

class CandidateReader {
 public:
  CandidateReader(ServerDocument& document, CommandOptions options)
      : document_(document), options_(options) {}

  void read(json::View list, bool is_remote);

 private:
  void add(json::View value, bool is_remote);
  std::string unique_id(std::string type) const;

  ServerDocument& document_;
  CommandOptions options_;
};

std::string CandidateReader::unique_id(std::string type) const {
  if (type.empty()) type = "unknown";
  std::string id = type;
  for (int number = 2;
       std::ranges::find(document_.candidates, id, &Candidate::id) != document_.candidates.end(); ++number)
    id = type + "-" + std::to_string(number);
  return id;
}

void CandidateReader::add(json::View value, bool is_remote) {
  RowBuilder row;
  row.title = document_.title;
  row.description = document_.description;
  if (is_remote) {
    add_remote(row, value);
  } else {
    add_package(row, value, options_);
  }
  Candidate candidate;
  candidate.id = unique_id(text_member(value, is_remote ? "type" : "registryType"));
  candidate.is_remote = is_remote;
  candidate.program = row.command;
  candidate.summary = is_remote ? row.url : command_line(row);
  candidate.server =
      std::move(row).build(document_.name, source_of(document_, is_remote ? "remote" : "package", value));
  document_.candidates.push_back(std::move(candidate));
}

void CandidateReader::read(json::View list, bool is_remote) {
  if (!list.is(json::Type::array)) return;
  list.each_element([&](json::View value) {
    if (value.is(json::Type::object)) add(value, is_remote);
    return document_.candidates.size() < kMaxServerDocumentChoices;
  });
}

}  // namespace

bool is_server_document(json::View object) {
  const Result<json::View> description = find_description(object);
  return !description || is_description(*description);
}

Result<ServerDocument> read_server_document(std::string_view text, CommandOptions options) {
  if (text.size() > kMaxServerDocumentBytes)
    return document_error("has more than max_server_document_bytes (" +
                          std::to_string(kMaxServerDocumentBytes) + ") bytes");
  const Result<json::Raw> parsed = json::Raw::parse(text, 64);
  if (!parsed) return document_error("is not JSON: " + parsed.error().message());
  const Result<json::View> description = find_description(json::View(*parsed));
  if (!description) return description.error();
  if (!description->is(json::Type::object) || !is_description(*description))
    return document_error("is not a server.json: it has no `name`, or neither `packages` nor `remotes`");
  ServerDocument document;
  document.name = text_member(*description, "name");
  document.title = text_member(*description, "title");
  document.description = text_member(*description, "description");
  document.version = text_member(*description, "version");
  document.website = text_member(*description, "websiteUrl");
  CandidateReader reader(document, options);
  reader.read((*description)["packages"], false);
  reader.read((*description)["remotes"], true);
  if (document.candidates.empty())
    return document_error("has no way to run the server `" + document.name +
                          "`: neither packages nor remotes");
  return document;
}

}  // namespace fairlead::packages
