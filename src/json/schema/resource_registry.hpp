// ResourceRegistry: finds every subschema of a schema and its identifiers ($id, $anchor, $dynamicAnchor), and
// resolves references. It never fetches documents; only the metaschemas are built in.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/schema/table.hpp"

namespace fairlead::json::schema {

class ResourceRegistry {
 public:
  // Fills the documents and locations of `table`.
  explicit ResourceRegistry(Table& table) noexcept : table_(table) {}

  // Adds the schema itself, which becomes node 0. REQUIRES: `text` is valid JSON.
  void add_root(std::string_view text);

  bool failed() const noexcept { return error_.has_value(); }
  // Returns the first error. REQUIRES: failed(), and error() has not been called before.
  Error error() { return *std::move(error_); }
  // Records an error about the value at `entry`. Only the first error is kept.
  void fail(std::uint32_t document, TapeIndex entry, std::string_view problem);
  void fail(Error error);

  const Tape& tape(std::uint32_t document) const { return table_.documents[document]->tape; }
  NodeId node_at(std::uint32_t document, TapeIndex entry) const {
    return table_.documents[document]->nodes[entry];
  }
  SchemaDialect dialect(std::uint32_t resource) const { return resources_[resource].dialect; }

  struct Target {
    NodeId node = kNone;            // kNone on failure
    std::string dynamic_name = {};  // the name of the $dynamicAnchor if the reference is to one
  };
  // Resolves the reference at `entry`, the value of a $ref or $dynamicRef in `resource`. May add locations to
  // the table.
  Target resolve(std::uint32_t document, TapeIndex entry, std::uint32_t resource);

  struct DynamicAnchor {
    std::string name;
    std::uint32_t resource;
    NodeId node;
  };
  const std::vector<DynamicAnchor>& dynamic_anchors() const noexcept { return dynamic_anchors_; }

 private:
  struct Resource {
    std::string uri;  // without a fragment; empty for a schema without $id
    std::uint32_t document;
    TapeIndex root;
    SchemaDialect dialect;
  };
  struct Anchor {
    Location location;
    bool dynamic;
  };

  // Adds a document and all schemas in it. Returns the index of the document.
  std::uint32_t add_document(std::string_view text, SchemaDialect dialect);
  // Adds the schema at `entry` and, by recursion, its subschemas. Returns the node of the schema, also if it
  // was added before; kNone after an error.
  NodeId add_schema(std::uint32_t document, TapeIndex entry, std::uint32_t resource);
  // Adds the subschemas of the schema `here`: those of all keywords, or of one keyword whose value is
  // `value`.
  void add_subschemas(const Location& here);
  void add_keyword_subschemas(const Location& here, TapeIndex value, SubschemaLayout layout);
  // Reads $id, $anchor and $dynamicAnchor of the schema `here`, and registers the resource and the anchors.
  void read_identifiers(Location& here, NodeId node);
  bool read_id(Location& here);
  // An anchor that is used twice is an error about the value at `error_at`.
  void add_anchor(const Location& here, NodeId node, std::string name, TapeIndex error_at, bool dynamic);
  std::optional<SchemaDialect> read_dialect(const Location& here, SchemaDialect default_value);
  std::optional<std::string> read_uri(std::uint32_t document, TapeIndex entry);

  std::optional<std::uint32_t> find_resource(const std::string& uri);
  NodeId follow_pointer(std::uint32_t resource, std::string_view pointer);
  // Returns the member or element `name` of the container at `entry`; kNoIndex if there is none.
  TapeIndex find_child(std::uint32_t document, TapeIndex entry, const std::string& name);

  Table& table_;
  std::optional<Error> error_;
  std::vector<Resource> resources_;
  std::map<std::string, std::uint32_t, std::less<>> resources_by_uri_;
  std::map<std::pair<std::uint32_t, std::string>, Anchor> anchors_;  // by resource and name
  std::vector<DynamicAnchor> dynamic_anchors_;
  // The children of each container that was on the path of a JSON Pointer. Without this cache, resolving many
  // references would take quadratic time.
  std::map<std::pair<std::uint32_t, TapeIndex>, std::map<std::string, TapeIndex>> children_;
};

}  // namespace fairlead::json::schema
