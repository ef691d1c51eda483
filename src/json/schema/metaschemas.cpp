#include "json/schema/metaschemas.hpp"

namespace fairlead::json::schema {

namespace {

constexpr std::string_view k2020Uri = "https://json-schema.org/draft/2020-12/schema";
constexpr std::string_view k2020Vocabularies = "https://json-schema.org/draft/2020-12/meta/";
constexpr std::string_view kDraft7Uri = "http://json-schema.org/draft-07/schema";

// The vocabularies are schema resources in the same document.
constexpr std::string_view k2020Text = R"({
"$schema": "https://json-schema.org/draft/2020-12/schema",
"$id": "https://json-schema.org/draft/2020-12/schema",
"$dynamicAnchor": "meta",
"allOf": [{"$ref": "meta/core"}, {"$ref": "meta/applicator"}, {"$ref": "meta/unevaluated"}, {"$ref": "meta/validation"},
          {"$ref": "meta/meta-data"}, {"$ref": "meta/format-annotation"}, {"$ref": "meta/content"}],
"type": ["object", "boolean"],
"properties": {
  "definitions": {"type": "object", "additionalProperties": {"$dynamicRef": "#meta"}},
  "dependencies": {"type": "object",
    "additionalProperties": {"anyOf": [{"$dynamicRef": "#meta"}, {"$ref": "meta/validation#/$defs/stringArray"}]}},
  "$recursiveAnchor": {"$ref": "meta/core#/$defs/anchorString"},
  "$recursiveRef": {"$ref": "meta/core#/$defs/uriReferenceString"}},
"$defs": {
"core": {
  "$id": "meta/core",
  "$dynamicAnchor": "meta",
  "type": ["object", "boolean"],
  "properties": {
    "$id": {"$ref": "#/$defs/uriReferenceString", "pattern": "^[^#]*#?$"},
    "$schema": {"$ref": "#/$defs/uriString"},
    "$ref": {"$ref": "#/$defs/uriReferenceString"},
    "$anchor": {"$ref": "#/$defs/anchorString"},
    "$dynamicRef": {"$ref": "#/$defs/uriReferenceString"},
    "$dynamicAnchor": {"$ref": "#/$defs/anchorString"},
    "$vocabulary": {"type": "object", "propertyNames": {"$ref": "#/$defs/uriString"},
                    "additionalProperties": {"type": "boolean"}},
    "$comment": {"type": "string"},
    "$defs": {"type": "object", "additionalProperties": {"$dynamicRef": "#meta"}}},
  "$defs": {
    "anchorString": {"type": "string", "pattern": "^[A-Za-z_][-A-Za-z0-9._]*$"},
    "uriString": {"type": "string", "format": "uri"},
    "uriReferenceString": {"type": "string", "format": "uri-reference"}}},
"applicator": {
  "$id": "meta/applicator",
  "$dynamicAnchor": "meta",
  "type": ["object", "boolean"],
  "properties": {
    "prefixItems": {"$ref": "#/$defs/schemaArray"},
    "items": {"$dynamicRef": "#meta"},
    "contains": {"$dynamicRef": "#meta"},
    "additionalProperties": {"$dynamicRef": "#meta"},
    "properties": {"$ref": "#/$defs/schemaMap"},
    "patternProperties": {"$ref": "#/$defs/schemaMap", "propertyNames": {"format": "regex"}},
    "dependentSchemas": {"$ref": "#/$defs/schemaMap"},
    "propertyNames": {"$dynamicRef": "#meta"},
    "if": {"$dynamicRef": "#meta"},
    "then": {"$dynamicRef": "#meta"},
    "else": {"$dynamicRef": "#meta"},
    "allOf": {"$ref": "#/$defs/schemaArray"},
    "anyOf": {"$ref": "#/$defs/schemaArray"},
    "oneOf": {"$ref": "#/$defs/schemaArray"},
    "not": {"$dynamicRef": "#meta"}},
  "$defs": {
    "schemaMap": {"type": "object", "additionalProperties": {"$dynamicRef": "#meta"}},
    "schemaArray": {"type": "array", "minItems": 1, "items": {"$dynamicRef": "#meta"}}}},
"unevaluated": {
  "$id": "meta/unevaluated",
  "$dynamicAnchor": "meta",
  "type": ["object", "boolean"],
  "properties": {"unevaluatedItems": {"$dynamicRef": "#meta"}, "unevaluatedProperties": {"$dynamicRef": "#meta"}}},
"validation": {
  "$id": "meta/validation",
  "$dynamicAnchor": "meta",
  "type": ["object", "boolean"],
  "properties": {
    "type": {"anyOf": [{"$ref": "#/$defs/simpleTypes"},
      {"type": "array", "items": {"$ref": "#/$defs/simpleTypes"}, "minItems": 1, "uniqueItems": true}]},
    "const": true,
    "enum": {"type": "array", "items": true},
    "multipleOf": {"type": "number", "exclusiveMinimum": 0},
    "maximum": {"type": "number"},
    "exclusiveMaximum": {"type": "number"},
    "minimum": {"type": "number"},
    "exclusiveMinimum": {"type": "number"},
    "maxLength": {"$ref": "#/$defs/nonNegativeInteger"},
    "minLength": {"$ref": "#/$defs/nonNegativeInteger"},
    "pattern": {"type": "string", "format": "regex"},
    "maxItems": {"$ref": "#/$defs/nonNegativeInteger"},
    "minItems": {"$ref": "#/$defs/nonNegativeInteger"},
    "uniqueItems": {"type": "boolean"},
    "maxContains": {"$ref": "#/$defs/nonNegativeInteger"},
    "minContains": {"$ref": "#/$defs/nonNegativeInteger"},
    "maxProperties": {"$ref": "#/$defs/nonNegativeInteger"},
    "minProperties": {"$ref": "#/$defs/nonNegativeInteger"},
    "required": {"$ref": "#/$defs/stringArray"},
    "dependentRequired": {"type": "object", "additionalProperties": {"$ref": "#/$defs/stringArray"}}},
  "$defs": {
    "nonNegativeInteger": {"type": "integer", "minimum": 0},
    "simpleTypes": {"enum": ["array", "boolean", "integer", "null", "number", "object", "string"]},
    "stringArray": {"type": "array", "items": {"type": "string"}, "uniqueItems": true}}},
"meta-data": {
  "$id": "meta/meta-data",
  "$dynamicAnchor": "meta",
  "type": ["object", "boolean"],
  "properties": {
    "title": {"type": "string"},
    "description": {"type": "string"},
    "default": true,
    "deprecated": {"type": "boolean"},
    "readOnly": {"type": "boolean"},
    "writeOnly": {"type": "boolean"},
    "examples": {"type": "array", "items": true}}},
"format-annotation": {
  "$id": "meta/format-annotation",
  "$dynamicAnchor": "meta",
  "type": ["object", "boolean"],
  "properties": {"format": {"type": "string"}}},
"content": {
  "$id": "meta/content",
  "$dynamicAnchor": "meta",
  "type": ["object", "boolean"],
  "properties": {
    "contentEncoding": {"type": "string"},
    "contentMediaType": {"type": "string"},
    "contentSchema": {"$dynamicRef": "#meta"}}}}
})";

constexpr std::string_view kDraft7Text = R"({
"$schema": "http://json-schema.org/draft-07/schema#",
"$id": "http://json-schema.org/draft-07/schema#",
"type": ["object", "boolean"],
"properties": {
  "$id": {"type": "string", "format": "uri-reference"},
  "$schema": {"type": "string", "format": "uri"},
  "$ref": {"type": "string", "format": "uri-reference"},
  "$comment": {"type": "string"},
  "title": {"type": "string"},
  "description": {"type": "string"},
  "default": true,
  "readOnly": {"type": "boolean"},
  "writeOnly": {"type": "boolean"},
  "examples": {"type": "array", "items": true},
  "multipleOf": {"type": "number", "exclusiveMinimum": 0},
  "maximum": {"type": "number"},
  "exclusiveMaximum": {"type": "number"},
  "minimum": {"type": "number"},
  "exclusiveMinimum": {"type": "number"},
  "maxLength": {"$ref": "#/definitions/nonNegativeInteger"},
  "minLength": {"$ref": "#/definitions/nonNegativeInteger"},
  "pattern": {"type": "string", "format": "regex"},
  "additionalItems": {"$ref": "#"},
  "items": {"anyOf": [{"$ref": "#"}, {"$ref": "#/definitions/schemaArray"}]},
  "maxItems": {"$ref": "#/definitions/nonNegativeInteger"},
  "minItems": {"$ref": "#/definitions/nonNegativeInteger"},
  "uniqueItems": {"type": "boolean"},
  "contains": {"$ref": "#"},
  "maxProperties": {"$ref": "#/definitions/nonNegativeInteger"},
  "minProperties": {"$ref": "#/definitions/nonNegativeInteger"},
  "required": {"$ref": "#/definitions/stringArray"},
  "additionalProperties": {"$ref": "#"},
  "definitions": {"type": "object", "additionalProperties": {"$ref": "#"}},
  "properties": {"type": "object", "additionalProperties": {"$ref": "#"}},
  "patternProperties": {"type": "object", "additionalProperties": {"$ref": "#"},
                        "propertyNames": {"format": "regex"}},
  "dependencies": {"type": "object",
    "additionalProperties": {"anyOf": [{"$ref": "#"}, {"$ref": "#/definitions/stringArray"}]}},
  "propertyNames": {"$ref": "#"},
  "const": true,
  "enum": {"type": "array", "items": true},
  "type": {"anyOf": [{"$ref": "#/definitions/simpleTypes"},
    {"type": "array", "items": {"$ref": "#/definitions/simpleTypes"}, "minItems": 1, "uniqueItems": true}]},
  "format": {"type": "string"},
  "contentMediaType": {"type": "string"},
  "contentEncoding": {"type": "string"},
  "if": {"$ref": "#"},
  "then": {"$ref": "#"},
  "else": {"$ref": "#"},
  "allOf": {"$ref": "#/definitions/schemaArray"},
  "anyOf": {"$ref": "#/definitions/schemaArray"},
  "oneOf": {"$ref": "#/definitions/schemaArray"},
  "not": {"$ref": "#"}},
"definitions": {
  "schemaArray": {"type": "array", "minItems": 1, "items": {"$ref": "#"}},
  "nonNegativeInteger": {"type": "integer", "minimum": 0},
  "simpleTypes": {"enum": ["array", "boolean", "integer", "null", "number", "object", "string"]},
  "stringArray": {"type": "array", "items": {"type": "string"}, "uniqueItems": true}}
})";

// Schemas refer to a metaschema by http or https, whichever of the two its $id has.
bool same_but_for_scheme(std::string_view a, std::string_view b) {
  const auto rest = [](std::string_view uri) {
    for (const std::string_view scheme : {"https:", "http:"}) {
      if (uri.starts_with(scheme)) return uri.substr(scheme.size());
    }
    return uri;
  };
  return rest(a) == rest(b);
}

}  // namespace

std::optional<SchemaDialect> find_dialect(std::string_view uri) {
  if (uri.ends_with('#')) uri.remove_suffix(1);
  if (same_but_for_scheme(uri, k2020Uri)) return SchemaDialect::draft2020_12;
  if (same_but_for_scheme(uri, kDraft7Uri)) return SchemaDialect::draft7;
  return std::nullopt;
}

std::optional<Metaschema> find_metaschema(std::string_view uri) {
  if (same_but_for_scheme(uri, k2020Uri)) return Metaschema{std::string(k2020Uri), k2020Text};
  if (same_but_for_scheme(uri, kDraft7Uri)) return Metaschema{std::string(kDraft7Uri), kDraft7Text};
  if (uri.starts_with(k2020Vocabularies)) return Metaschema{std::string(uri), k2020Text};
  return std::nullopt;
}

}  // namespace fairlead::json::schema
