#include "json/schema/resource_registry.hpp"

#include <algorithm>

#include "base/uri.hpp"
#include "json/schema/message_text.hpp"
#include "json/schema/metaschemas.hpp"

namespace fairlead::json::schema {

namespace {

// Limits $id, $ref and anchors. Each reference is resolved against the base URI, so a long base URI would be
// copied for each of many references.
constexpr std::size_t kMaxUriBytes = 2048;

std::string unescape_pointer_token(std::string_view step) {
  std::string name;
  for (std::size_t i = 0; i < step.size(); ++i) {
    const bool escape = step[i] == '~' && i + 1 < step.size() && (step[i + 1] == '0' || step[i + 1] == '1');
    name += escape ? (step[++i] == '0' ? '~' : '/') : step[i];
  }
  return name;
}

}  // namespace

void ResourceRegistry::fail(Error error) {
  if (!failed()) error_.emplace(std::move(error));
}

void ResourceRegistry::fail(std::uint32_t document, TapeIndex entry, std::string_view problem) {
  if (failed()) return;
  const std::string pointer = tape(document).pointer(entry);
  error_.emplace(ErrorKind::validation,
                 pointer.empty() ? std::string(problem) : pointer + ": " + std::string(problem));
}

void ResourceRegistry::add_root(std::string_view text) {
  add_document(text, table_.options.dialect);
}

std::uint32_t ResourceRegistry::add_document(std::string_view text, SchemaDialect dialect) {
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
  resources_by_uri_.try_emplace("", resource);
  add_schema(document, 0, resource);
  return document;
}

// max_schema_depth limits the recursion.
NodeId ResourceRegistry::add_schema(std::uint32_t document, TapeIndex entry, std::uint32_t resource) {
  if (failed()) return kNone;
  if (const NodeId known = node_at(document, entry); known != kNone) return known;
  const Type type = tape(document).type(entry);
  if (type != Type::object && type != Type::boolean) {
    fail(document, entry, "expected a schema (object or boolean), got " + std::string(type_name(type)));
    return kNone;
  }
  if (table_.locations.size() >= table_.options.max_subschemas) {
    fail(document, entry,
         limit_message("more subschemas than max_subschemas", table_.options.max_subschemas));
    return kNone;
  }
  const auto node = static_cast<NodeId>(table_.locations.size());
  Location here{document, entry, resource};
  table_.locations.push_back(here);
  table_.documents[document]->nodes[entry] = node;
  if (type == Type::boolean) return node;
  read_identifiers(here, node);
  table_.locations[node] = here;
  add_subschemas(here);
  return node;
}

void ResourceRegistry::add_subschemas(const Location& here) {
  const Tape& tape = this->tape(here.document);
  const SchemaDialect dialect = this->dialect(here.resource);
  // Draft 7 ignores the other keywords of a schema with $ref, but references may point into `definitions`.
  const bool only_definitions =
      dialect == SchemaDialect::draft7 && tape.member(here.entry, "$ref") != kNoIndex;
  std::string buffer;
  for (TapeIndex key = here.entry + 1; key != tape.next(here.entry) && !failed(); key = tape.next(key + 1)) {
    const Keyword keyword = find_keyword(tape.string(key, buffer), dialect);
    if (keyword == Keyword::items && dialect == SchemaDialect::draft2020_12 &&
        tape.type(key + 1) == Type::array)
      return fail(here.document, key + 1, "an array of schemas is called prefixItems in 2020-12");
    if (only_definitions && keyword != Keyword::definitions && keyword != Keyword::defs) continue;
    if (keyword != Keyword::none) add_keyword_subschemas(here, key + 1, subschema_layout(keyword, dialect));
  }
}

void ResourceRegistry::add_keyword_subschemas(const Location& here, TapeIndex value, SubschemaLayout layout) {
  const Tape& tape = this->tape(here.document);
  const Type type = tape.type(value);
  if (layout == SubschemaLayout::none) return;
  if (layout == SubschemaLayout::schema ||
      (layout == SubschemaLayout::schema_or_list && type != Type::array)) {
    add_schema(here.document, value, here.resource);
    return;
  }
  const bool named = layout == SubschemaLayout::map || layout == SubschemaLayout::dependencies;
  if (type != (named ? Type::object : Type::array))
    return fail(
        here.document, value,
        "expected " + std::string(named ? "object" : "array") + ", got " + std::string(type_name(type)));
  for (TapeIndex entry = value + 1; entry != tape.next(value) && !failed();) {
    const TapeIndex item = named ? entry + 1 : entry;
    if (layout != SubschemaLayout::dependencies || tape.type(item) != Type::array)
      add_schema(here.document, item, here.resource);
    entry = tape.next(item);
  }
}

void ResourceRegistry::read_identifiers(Location& here, NodeId node) {
  if (!read_id(here)) return;
  if (dialect(here.resource) == SchemaDialect::draft7) return;
  const Tape& tape = this->tape(here.document);
  for (const auto& [keyword, dynamic] : {std::pair{"$anchor", false}, std::pair{"$dynamicAnchor", true}}) {
    const TapeIndex entry = tape.member(here.entry, keyword);
    if (entry == kNoIndex) continue;
    if (const auto name = read_uri(here.document, entry)) add_anchor(here, node, *name, entry, dynamic);
  }
}

// Handles $id: the schema becomes a resource or, in draft 7 with an $id that is only a fragment, an anchor.
// Returns false after an error, and for a schema with $ref in draft 7, whose identifiers are ignored.
bool ResourceRegistry::read_id(Location& here) {
  const Tape& tape = this->tape(here.document);
  const bool draft7 = dialect(here.resource) == SchemaDialect::draft7;
  const TapeIndex id = tape.member(here.entry, "$id");
  if (id == kNoIndex) return true;
  if (draft7 && tape.member(here.entry, "$ref") != kNoIndex) return false;
  const auto reference = read_uri(here.document, id);
  if (!reference) return false;
  const std::string uri = resolve_uri(resources_[here.resource].uri, *reference);
  if (uri.size() > kMaxUriBytes)
    return fail(here.document, id, "a base URI this long is not supported"), false;
  const auto [base, fragment, _] = split_fragment(uri);
  if (!draft7 && !fragment.empty()) return fail(here.document, id, "$id must not have a fragment"), false;
  if (!reference->starts_with('#')) {
    const bool root = here.entry == resources_[here.resource].root;
    const auto named = read_dialect(here, dialect(here.resource));
    if (!named) return false;
    if (!root) {
      resources_.push_back({"", here.document, here.entry, *named});
      here.resource = static_cast<std::uint32_t>(resources_.size() - 1);
    }
    resources_[here.resource].uri = base;
    // A resource of the schema itself takes precedence over a metaschema with the same URI.
    if (!resources_by_uri_.try_emplace(std::string(base), here.resource).second && here.document == 0)
      return fail(here.document, id, "the $id " + quoted(base) + " is used twice"), false;
  }
  if (!fragment.empty())
    add_anchor(here, node_at(here.document, here.entry), std::string(fragment), id, false);
  return true;
}

void ResourceRegistry::add_anchor(const Location& here, NodeId node, std::string name, TapeIndex error_at,
                                  bool dynamic) {
  if (dynamic) dynamic_anchors_.push_back({name, here.resource, node});
  const auto [found, added] = anchors_.try_emplace({here.resource, std::move(name)}, Anchor{here, dynamic});
  if (!added && found->second.location.entry != here.entry)
    return fail(here.document, error_at, "the anchor " + quoted(found->first.second) + " is used twice");
  found->second.dynamic |= dynamic;
}

// Returns the dialect that $schema selects, or `default_value` if there is no $schema.
std::optional<SchemaDialect> ResourceRegistry::read_dialect(const Location& here,
                                                            SchemaDialect default_value) {
  const Tape& tape = this->tape(here.document);
  const TapeIndex entry =
      tape.type(here.entry) == Type::object ? tape.member(here.entry, "$schema") : kNoIndex;
  if (entry == kNoIndex) return default_value;
  const auto uri = read_uri(here.document, entry);
  if (!uri) return std::nullopt;
  const auto found = find_dialect(*uri);
  if (!found)
    fail(here.document, entry,
         "unsupported dialect " + quoted(*uri) +
             "; supported are https://json-schema.org/draft/2020-12/schema and "
             "http://json-schema.org/draft-07/schema#");
  return found;
}

// Reads a URI reference or an anchor name.
std::optional<std::string> ResourceRegistry::read_uri(std::uint32_t document, TapeIndex entry) {
  const Tape& tape = this->tape(document);
  std::string buffer;
  if (tape.type(entry) != Type::string) {
    fail(document, entry, "expected string, got " + std::string(type_name(tape.type(entry))));
    return std::nullopt;
  }
  std::string text(tape.string(entry, buffer));
  if (text.size() <= kMaxUriBytes) return text;
  fail(document, entry, "longer than " + std::to_string(kMaxUriBytes) + " bytes");
  return std::nullopt;
}

// Finds the resource with this URI. If it is that of a metaschema, adds the document of the metaschema.
std::optional<std::uint32_t> ResourceRegistry::find_resource(const std::string& uri) {
  if (const auto known = resources_by_uri_.find(uri); known != resources_by_uri_.end()) return known->second;
  const auto metaschema = find_metaschema(uri);
  if (!metaschema) return std::nullopt;
  if (!resources_by_uri_.contains(metaschema->uri))
    add_document(metaschema->text, SchemaDialect::draft2020_12);
  const auto found = resources_by_uri_.find(metaschema->uri);
  if (failed() || found == resources_by_uri_.end()) return std::nullopt;
  return found->second;
}

ResourceRegistry::Target ResourceRegistry::resolve(std::uint32_t document, TapeIndex entry,
                                                   std::uint32_t resource) {
  const auto reference = read_uri(document, entry);
  if (!reference) return {};
  const std::string uri = resolve_uri(resources_[resource].uri, *reference);
  const auto [base, fragment, _] = split_fragment(uri);
  const auto found = find_resource(std::string(base));
  if (!found) {
    fail(document, entry,
         "refers to " + quoted(uri) + ", which is not part of the schema; references are not fetched");
    return {};
  }
  const std::string name = percent_decode_lenient(fragment);
  if (name.empty() || name.starts_with('/')) {
    const NodeId node = follow_pointer(*found, name);
    if (node == kNone)
      fail(document, entry, "refers to " + quoted(*reference) + ", but there is no value there");
    return {node};
  }
  const auto anchor = anchors_.find({*found, name});
  if (anchor == anchors_.end()) {
    fail(document, entry, "refers to " + quoted(*reference) + ", but there is no such anchor");
    return {};
  }
  const Location& target = anchor->second.location;
  return {node_at(target.document, target.entry), anchor->second.dynamic ? name : ""};
}

// Returns the node at a JSON Pointer. If the value there is not a subschema of any keyword, adds it as one.
NodeId ResourceRegistry::follow_pointer(std::uint32_t resource, std::string_view pointer) {
  const std::uint32_t document = resources_[resource].document;
  TapeIndex entry = resources_[resource].root;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const std::string step = unescape_pointer_token(pointer.substr(0, pointer.find('/')));
    pointer.remove_prefix(std::min(pointer.find('/'), pointer.size()));
    entry = find_child(document, entry, step);
    if (entry == kNoIndex) return kNone;
    if (const NodeId node = node_at(document, entry); node != kNone)
      resource = table_.locations[node].resource;
  }
  return add_schema(document, entry, resource);
}

TapeIndex ResourceRegistry::find_child(std::uint32_t document, TapeIndex entry, const std::string& name) {
  const Tape& tape = this->tape(document);
  const Type type = tape.type(entry);
  if (type != Type::array && type != Type::object) return kNoIndex;
  auto [found, added] = children_.try_emplace({document, entry});
  std::map<std::string, TapeIndex>& children = found->second;
  if (added) {
    std::string buffer;
    for (TapeIndex child = entry + 1; child != tape.next(entry);) {
      const TapeIndex value = type == Type::object ? child + 1 : child;
      children[type == Type::object ? std::string(tape.string(child, buffer))
                                    : std::to_string(children.size())] = value;
      child = tape.next(value);
    }
  }
  const auto child = children.find(name);
  return child == children.end() ? kNoIndex : child->second;
}

}  // namespace fairlead::json::schema
