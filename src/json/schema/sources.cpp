#include "json/schema/sources.hpp"

#include <algorithm>

#include "base/uri.hpp"
#include "json/schema/metaschemas.hpp"
#include "json/schema/names.hpp"

namespace fairlead::json::schema {

namespace {

// References are resolved against each other, so a long one would be copied for each of many.
constexpr std::size_t kMaxUriBytes = 2048;

std::string unescaped_step(std::string_view step) {
  std::string name;
  for (std::size_t i = 0; i < step.size(); ++i) {
    const bool escape = step[i] == '~' && i + 1 < step.size() && (step[i + 1] == '0' || step[i + 1] == '1');
    name += escape ? (step[++i] == '0' ? '~' : '/') : step[i];
  }
  return name;
}

}  // namespace

void Sources::fail(Error error) {
  if (!failed()) error_.emplace(std::move(error));
}

void Sources::fail(std::uint32_t document, Index at, std::string_view what) {
  if (failed()) return;
  const std::string pointer = tape(document).pointer(at);
  error_.emplace(ErrorKind::validation,
                 pointer.empty() ? std::string(what) : pointer + ": " + std::string(what));
}

void Sources::add_root(std::string_view text) {
  add_document(text, table_.options.dialect);
}

std::uint32_t Sources::add_document(std::string_view text, SchemaDialect dialect) {
  const auto document = static_cast<std::uint32_t>(table_.documents.size());
  auto& added = *table_.documents.emplace_back(std::make_unique<Document>());
  added.text = text;
  if (added.tape.read(added.text, {.max_depth = table_.options.max_schema_depth}) != Tape::Problem::none) {
    fail(Error(ErrorKind::validation, "the schema is not valid JSON"));
    return document;
  }
  added.nodes.assign(added.tape.size(), kNone);
  const auto resource = static_cast<std::uint32_t>(resources_.size());
  resources_.push_back({"", document, 0, dialect});
  if (const auto named = read_dialect({document, 0, resource}, dialect))
    resources_[resource].dialect = *named;
  by_uri_.try_emplace("", resource);
  locate(document, 0, resource);
  return document;
}

// Calls itself for schemas within schemas: max_schema_depth bounds that.
NodeId Sources::locate(std::uint32_t document, Index at, std::uint32_t resource) {
  if (failed()) return kNone;
  if (const NodeId known = node_at(document, at); known != kNone) return known;
  const Type type = tape(document).type(at);
  if (type != Type::object && type != Type::boolean) {
    fail(document, at, "expected a schema (object or boolean), got " + std::string(name_of(type)));
    return kNone;
  }
  if (table_.locations.size() >= table_.options.max_subschemas) {
    fail(document, at, limit_message("more subschemas than max_subschemas", table_.options.max_subschemas));
    return kNone;
  }
  const auto node = static_cast<NodeId>(table_.locations.size());
  Location here{document, at, resource};
  table_.locations.push_back(here);
  table_.documents[document]->nodes[at] = node;
  if (type == Type::boolean) return node;
  identify(here, node);
  table_.locations[node] = here;
  locate_members(here);
  return node;
}

void Sources::locate_members(const Location& here) {
  const Tape& tape = this->tape(here.document);
  const SchemaDialect dialect = this->dialect(here.resource);
  // In draft 7 nothing beside $ref counts, though what stands there may be referred to.
  const bool only_definitions = dialect == SchemaDialect::draft7 && tape.member(here.at, "$ref") != kNowhere;
  std::string room;
  for (Index key = here.at + 1; key != tape.next(here.at) && !failed(); key = tape.next(key + 1)) {
    const Keyword keyword = find_keyword(tape.string(key, room), dialect);
    if (keyword == Keyword::items && dialect == SchemaDialect::draft2020_12 &&
        tape.type(key + 1) == Type::array)
      return fail(here.document, key + 1, "an array of schemas is called prefixItems in 2020-12");
    if (only_definitions && keyword != Keyword::definitions && keyword != Keyword::defs) continue;
    if (keyword != Keyword::none) locate_inside(here, key + 1, shape(keyword, dialect));
  }
}

void Sources::locate_inside(const Location& here, Index value, Shape shape) {
  const Tape& tape = this->tape(here.document);
  const Type type = tape.type(value);
  if (shape == Shape::plain) return;
  if (shape == Shape::schema || (shape == Shape::schema_or_list && type != Type::array)) {
    locate(here.document, value, here.resource);
    return;
  }
  const bool named = shape == Shape::map || shape == Shape::dependencies;
  if (type != (named ? Type::object : Type::array))
    return fail(
        here.document, value,
        "expected " + std::string(named ? "object" : "array") + ", got " + std::string(name_of(type)));
  for (Index at = value + 1; at != tape.next(value) && !failed();) {
    const Index item = named ? at + 1 : at;
    if (shape != Shape::dependencies || tape.type(item) != Type::array)
      locate(here.document, item, here.resource);
    at = tape.next(item);
  }
}

void Sources::identify(Location& here, NodeId node) {
  if (!identify_resource(here)) return;
  if (dialect(here.resource) == SchemaDialect::draft7) return;
  const Tape& tape = this->tape(here.document);
  for (const auto& [keyword, dynamic] : {std::pair{"$anchor", false}, std::pair{"$dynamicAnchor", true}}) {
    const Index at = tape.member(here.at, keyword);
    if (at == kNowhere) continue;
    if (const auto name = read_uri(here.document, at)) add_anchor(here, node, *name, at, dynamic);
  }
}

// $id makes a schema a resource of its own; in draft 7 one that is only a fragment makes it an anchor. False
// when nothing else here identifies it.
bool Sources::identify_resource(Location& here) {
  const Tape& tape = this->tape(here.document);
  const bool draft7 = dialect(here.resource) == SchemaDialect::draft7;
  const Index id = tape.member(here.at, "$id");
  if (id == kNowhere) return true;
  if (draft7 && tape.member(here.at, "$ref") != kNowhere) return false;
  const auto spelled = read_uri(here.document, id);
  if (!spelled) return false;
  const std::string uri = resolve_uri(resources_[here.resource].uri, *spelled);
  if (uri.size() > kMaxUriBytes)
    return fail(here.document, id, "a base URI this long is not supported"), false;
  const auto [base, fragment, _] = split_fragment(uri);
  if (!draft7 && !fragment.empty()) return fail(here.document, id, "$id must not have a fragment"), false;
  if (!spelled->starts_with('#')) {
    const bool root = here.at == resources_[here.resource].root;
    const auto named = read_dialect(here, dialect(here.resource));
    if (!named) return false;
    if (!root) {
      resources_.push_back({"", here.document, here.at, *named});
      here.resource = static_cast<std::uint32_t>(resources_.size() - 1);
    }
    resources_[here.resource].uri = base;
    // A metaschema yields to what the schema itself has under that name.
    if (!by_uri_.try_emplace(std::string(base), here.resource).second && here.document == 0)
      return fail(here.document, id, "the $id " + quoted(base) + " is used twice"), false;
  }
  if (!fragment.empty()) add_anchor(here, node_at(here.document, here.at), std::string(fragment), id, false);
  return true;
}

void Sources::add_anchor(const Location& here, NodeId node, std::string name, Index at, bool dynamic) {
  if (dynamic) dynamic_anchors_.push_back({name, here.resource, node});
  const auto [found, added] = anchors_.try_emplace({here.resource, std::move(name)}, Anchor{here, dynamic});
  if (!added && found->second.location.at != here.at)
    return fail(here.document, at, "the anchor " + quoted(found->first.second) + " is used twice");
  found->second.dynamic |= dynamic;
}

// What $schema selects; `otherwise` where there is none.
std::optional<SchemaDialect> Sources::read_dialect(const Location& here, SchemaDialect otherwise) {
  const Tape& tape = this->tape(here.document);
  const Index at = tape.type(here.at) == Type::object ? tape.member(here.at, "$schema") : kNowhere;
  if (at == kNowhere) return otherwise;
  const auto uri = read_uri(here.document, at);
  if (!uri) return std::nullopt;
  const auto found = find_dialect(*uri);
  if (!found)
    fail(here.document, at,
         "unsupported dialect " + quoted(*uri) +
             "; supported are https://json-schema.org/draft/2020-12/schema and "
             "http://json-schema.org/draft-07/schema#");
  return found;
}

// A string that takes part in making URIs.
std::optional<std::string> Sources::read_uri(std::uint32_t document, Index at) {
  const Tape& tape = this->tape(document);
  std::string room;
  if (tape.type(at) != Type::string) {
    fail(document, at, "expected string, got " + std::string(name_of(tape.type(at))));
    return std::nullopt;
  }
  std::string text(tape.string(at, room));
  if (text.size() <= kMaxUriBytes) return text;
  fail(document, at, "longer than " + std::to_string(kMaxUriBytes) + " bytes");
  return std::nullopt;
}

// One of ours, or a metaschema, which is then read.
std::optional<std::uint32_t> Sources::find_resource(const std::string& uri) {
  if (const auto known = by_uri_.find(uri); known != by_uri_.end()) return known->second;
  const auto metaschema = find_metaschema(uri);
  if (!metaschema) return std::nullopt;
  if (!by_uri_.contains(metaschema->uri)) add_document(metaschema->text, SchemaDialect::draft2020_12);
  const auto found = by_uri_.find(metaschema->uri);
  if (failed() || found == by_uri_.end()) return std::nullopt;
  return found->second;
}

Sources::Target Sources::resolve(std::uint32_t document, Index at, std::uint32_t resource) {
  const auto spelled = read_uri(document, at);
  if (!spelled) return {};
  const std::string uri = resolve_uri(resources_[resource].uri, *spelled);
  const auto [base, fragment, _] = split_fragment(uri);
  const auto found = find_resource(std::string(base));
  if (!found) {
    fail(document, at,
         "refers to " + quoted(uri) + ", which is not part of the schema; references are not fetched");
    return {};
  }
  const std::string name = percent_decoded(fragment);
  if (name.empty() || name.starts_with('/')) {
    const NodeId node = follow_pointer(*found, name);
    if (node == kNone) fail(document, at, "refers to " + quoted(*spelled) + ", but nothing stands there");
    return {node};
  }
  const auto anchor = anchors_.find({*found, name});
  if (anchor == anchors_.end()) {
    fail(document, at, "refers to " + quoted(*spelled) + ", but there is no such anchor");
    return {};
  }
  const Location& target = anchor->second.location;
  return {node_at(target.document, target.at), anchor->second.dynamic ? name : ""};
}

// May end in a place that no keyword makes a schema: it becomes one then.
NodeId Sources::follow_pointer(std::uint32_t resource, std::string_view pointer) {
  const std::uint32_t document = resources_[resource].document;
  Index at = resources_[resource].root;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const std::string step = unescaped_step(pointer.substr(0, pointer.find('/')));
    pointer.remove_prefix(std::min(pointer.find('/'), pointer.size()));
    at = step_into(document, at, step);
    if (at == kNowhere) return kNone;
    if (const NodeId node = node_at(document, at); node != kNone) resource = table_.locations[node].resource;
  }
  return locate(document, at, resource);
}

Index Sources::step_into(std::uint32_t document, Index at, const std::string& name) {
  const Tape& tape = this->tape(document);
  const Type type = tape.type(at);
  if (type != Type::array && type != Type::object) return kNowhere;
  auto [found, added] = children_.try_emplace({document, at});
  std::map<std::string, Index>& children = found->second;
  if (added) {
    std::string room;
    for (Index child = at + 1; child != tape.next(at);) {
      const Index value = type == Type::object ? child + 1 : child;
      children[type == Type::object ? std::string(tape.string(child, room))
                                    : std::to_string(children.size())] = value;
      child = tape.next(value);
    }
  }
  const auto child = children.find(name);
  return child == children.end() ? kNowhere : child->second;
}

}  // namespace fairlead::json::schema
