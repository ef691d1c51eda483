#include "admin/openapi.hpp"

#include <set>

#include "admin/schemas.hpp"
#include "base/lower_case.hpp"
#include "fairlead/json/writer.hpp"

namespace fairlead::admin {

namespace {

void write_reference(json::Writer& writer, std::string_view schema) {
  writer.begin_object().key("$ref").string("#/components/schemas/" + std::string(schema)).end_object();
}

// Writes the schema of a response: a component, or a page of a list.
void write_schema(json::Writer& writer, std::string_view schema) {
  if (!schema.starts_with('[')) return write_reference(writer, schema);
  writer.begin_object().key("type").string("object").key("properties").begin_object();
  writer.key("items").begin_object().key("type").string("array").key("items");
  write_reference(writer, schema.substr(1, schema.size() - 2));
  writer.end_object();
  writer.key("nextCursor").begin_object().key("type").string("string");
  writer.key("description").string("The value of `cursor` for the next page; absent on the last page");
  writer.end_object().end_object();
  writer.key("required").begin_array().string("items").end_array();
  writer.key("additionalProperties").boolean(false).end_object();
}

void write_parameter(json::Writer& writer, std::string_view where, const Parameter& parameter) {
  writer.begin_object().key("name").string(parameter.name).key("in").string(where);
  writer.key("required").boolean(where == "path").key("description").string(parameter.description);
  writer.key("schema").raw(parameter.schema).end_object();
}

std::string_view path_parameter_description(std::string_view name) {
  return name == "key" ? "The full key, such as mcp.max_stdio_processes" : "The id or the name of the row";
}

void write_header_parameters(json::Writer& writer, const Route& route) {
  const auto header = [&](std::string_view name, std::string_view description) {
    write_parameter(writer, "header", Parameter{name, description, R"({"type":"string"})"});
  };
  if (route.method == "POST")
    header(
        "Idempotency-Key",
        "Up to 255 visible ASCII characters. A repeated request with the same key gets the stored response.");
  if (route.method == "PATCH" || (route.method == "DELETE" && route.path.ends_with("{id}")))
    header("If-Match", "Change the row only if it has this ETag.");
  if (route.method == "GET" && route.path.ends_with("{id}"))
    header("If-None-Match", "Respond with 304 if the row still has this ETag.");
}

void write_parameters(json::Writer& writer, const Route& route) {
  writer.key("parameters").begin_array();
  const std::size_t open = route.path.find('{');
  if (open != std::string_view::npos) {
    const std::string_view name = route.path.substr(open + 1, route.path.find('}') - open - 1);
    write_parameter(writer, "path",
                    Parameter{name, path_parameter_description(name), R"({"type":"string"})"});
  }
  for (const Parameter& parameter : route.query) write_parameter(writer, "query", parameter);
  write_header_parameters(writer, route);
  writer.end_array();
}

void write_content(json::Writer& writer, std::string_view type, std::string_view schema) {
  writer.key(type).begin_object().key("schema");
  if (schema.empty()) {
    writer.begin_object().key("type").string("string").end_object();
  } else {
    write_schema(writer, schema);
  }
  writer.end_object();
}

void write_request_body(json::Writer& writer, const Route& route) {
  if (route.body == Body::none) return;
  writer.key("requestBody").begin_object().key("required").boolean(true).key("content").begin_object();
  write_content(writer, "application/json", route.request_schema);
  if (route.body == Body::merge_patch)
    write_content(writer, "application/merge-patch+json", route.request_schema);
  writer.end_object().end_object();
}

void write_response_headers(json::Writer& writer, const Route& route, int status) {
  const bool has_tag = route.path.ends_with("{id}") && route.method != "DELETE";
  if (status != 201 && !(status == 200 && has_tag)) return;
  writer.key("headers").begin_object();
  const auto header = [&](std::string_view name, std::string_view description) {
    writer.key(name).begin_object().key("description").string(description);
    writer.key("schema").begin_object().key("type").string("string").end_object().end_object();
  };
  header("ETag", "The version of the row, for If-Match and If-None-Match");
  if (status == 201) header("Location", "The path of the new row");
  writer.end_object();
}

void write_response(json::Writer& writer, const Route& route, const ResponseSpec& response) {
  writer.key(std::to_string(response.status)).begin_object();
  writer.key("description").string(response.description);
  write_response_headers(writer, route, response.status);
  if (!response.schema.empty() || response.events) {
    writer.key("content").begin_object();
    if (response.schema == "html")
      write_content(writer, "text/html", "");
    else if (response.schema == "any")
      writer.key("application/json").begin_object().end_object();
    else if (!response.schema.empty())
      write_content(writer, "application/json", response.schema);
    if (response.events) write_content(writer, "text/event-stream", "");
    writer.end_object();
  }
  writer.end_object();
}

void write_responses(json::Writer& writer, const Route& route) {
  writer.key("responses").begin_object();
  for (const ResponseSpec& response : route.responses) write_response(writer, route, response);
  if (route.is_read() && route.path.ends_with("{id}"))
    write_response(writer, route,
                   ResponseSpec{304, "The row still has the ETag of If-None-Match", "", false});
  writer.key("default").begin_object().key("description").string("An error (RFC 9457)");
  writer.key("content").begin_object();
  write_content(writer, "application/problem+json", "Problem");
  writer.end_object().end_object().end_object();
}

void write_operation(json::Writer& writer, const Route& route) {
  writer.key(lower_case(route.method)).begin_object();
  writer.key("operationId").string(route.operation).key("summary").string(route.summary);
  writer.key("tags")
      .begin_array()
      .string(route.area ? registry::to_string(*route.area) : "documentation")
      .end_array();
  if (!route.area) writer.key("security").begin_array().end_array();
  write_parameters(writer, route);
  write_request_body(writer, route);
  write_responses(writer, route);
  writer.end_object();
}

void write_paths(json::Writer& writer, const RouteTable& table) {
  writer.key("paths").begin_object();
  std::set<std::string_view> written;
  for (const Route& first : table.routes()) {
    if (!written.insert(first.path).second) continue;
    const bool is_document = !first.area;
    writer.key(is_document ? std::string(first.path) : std::string(kApiPrefix) + std::string(first.path));
    writer.begin_object();
    for (const Route& route : table.routes()) {
      if (route.path == first.path) write_operation(writer, route);
    }
    writer.end_object();
  }
  writer.end_object();
}

void write_components(json::Writer& writer) {
  writer.key("components").begin_object();
  writer.key("securitySchemes").begin_object().key("token").begin_object();
  writer.key("type").string("http").key("scheme").string("bearer");
  writer.key("description").string("An API token (POST /tokens), or the administrator's token");
  writer.end_object().end_object();
  writer.key("schemas").begin_object();
  for (const ComponentSchema& schema : component_schemas()) writer.key(schema.name).raw(schema.json);
  writer.end_object().end_object();
}

}  // namespace

json::Raw openapi_document(const RouteTable& routes, std::string_view version) {
  json::Writer writer;
  writer.begin_object().key("openapi").string("3.1.0");
  writer.key("info").begin_object().key("title").string("Fairlead admin API");
  writer.key("version").string(version);
  writer.key("description")
      .string(
          "Administration of the gateway: servers, endpoints, users, configuration. Every path is also "
          "served "
          "without the prefix /api/v1.");
  writer.key("license")
      .begin_object()
      .key("name")
      .string("Apache License 2.0")
      .key("identifier")
      .string("Apache-2.0");
  writer.end_object().end_object();
  writer.key("servers").begin_array().begin_object().key("url").string("/").end_object().end_array();
  writer.key("security").begin_array().begin_object().key("token").begin_array().end_array();
  writer.end_object().end_array();
  write_paths(writer, routes);
  write_components(writer);
  writer.end_object();
  return writer.finish();
}

}  // namespace fairlead::admin
