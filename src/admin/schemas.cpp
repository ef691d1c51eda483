#include "admin/schemas.hpp"

#include <array>

namespace fairlead::admin {

namespace {

constexpr std::array kSchemas = std::to_array<ComponentSchema>({
    {"Problem", R"json({
  "type":"object","description":"An error (RFC 9457). The codes are listed in docs/errors.md.",
  "properties":{
    "type":{"type":"string"},"title":{"type":"string"},"status":{"type":"integer"},"detail":{"type":"string"},
    "instance":{"type":"string"},"code":{"type":"string"},"remedy":{"type":"string"},"requestId":{"type":"string"},
    "errors":{"type":"array","items":{"type":"object","properties":{
      "pointer":{"type":"string","description":"JSON pointer of the member that is wrong"},"detail":{"type":"string"}},
      "required":["pointer","detail"],"additionalProperties":false}}},
  "required":["type","title","status","detail","instance","code","remedy","requestId"],"additionalProperties":false})json"},
    {"ToolRules", R"json({
  "type":"object","description":"Rules for the tools of a server; `*` in a pattern matches any text.",
  "properties":{"allow":{"$ref":"#/components/schemas/Names"},"deny":{"$ref":"#/components/schemas/Names"},
    "hide":{"$ref":"#/components/schemas/Names"},"rename":{"type":"object","additionalProperties":{"type":"string"}}},
  "additionalProperties":false})json"},
    {"Names", R"json({"type":"array","items":{"type":"string"}})json"},
    {"Published",
     R"json({"type":"object","description":"How the server is published at /v0.1/servers: members of a server.json, which replace those derived from the row",
    "required":["name","version"],"properties":{"name":{"type":"string","pattern":"^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$","minLength":3,"maxLength":200},
    "version":{"type":"string","minLength":1,"maxLength":255},"title":{"type":"string"},"description":{"type":"string","minLength":1,"maxLength":100},
    "websiteUrl":{"type":"string"},"repository":{"type":"object"},"icons":{"type":"array","items":{"type":"object"}},
    "packages":{"type":"array","items":{"type":"object"}},"remotes":{"type":"array","items":{"type":"object"}},"_meta":{"type":"object"}}})json"},
    {"ServerInput", R"json({
  "type":"object","description":"A server that is created. docs/gateway.md lists the members of `config`.",
  "properties":{
    "name":{"type":"string"},"title":{"type":"string"},"description":{"type":"string"},"domain":{"type":"string"},
    "tags":{"$ref":"#/components/schemas/Names"},"transport":{"enum":["stdio","http"]},
    "config":{"type":"object"},"visibility":{"enum":["hidden","visible","user"]},"owner":{"type":"string"},
    "enabled":{"type":"boolean"},"tools":{"$ref":"#/components/schemas/ToolRules"},
    "drift":{"enum":["accept","flag","quarantine"]},"metadata":{"type":"object"},"published":{"$ref":"#/components/schemas/Published"}},
  "required":["name","config"],"additionalProperties":false,
  "examples":[{"name":"files","description":"Files of the project","domain":"files","transport":"stdio",
    "config":{"command":"npx","args":["-y","@modelcontextprotocol/server-filesystem","/srv/project"]}}]})json"},
    {"ServerPatch", R"json({"type":"object","description":"A merge patch (RFC 7396) of a Server"})json"},
    {"Server", R"json({
  "type":"object",
  "properties":{
    "id":{"type":"string"},"name":{"type":"string"},"title":{"type":"string"},"description":{"type":"string"},
    "domain":{"type":"string"},"tags":{"$ref":"#/components/schemas/Names"},"transport":{"enum":["stdio","http"]},
    "config":{"type":"object"},"visibility":{"enum":["hidden","visible","user"]},"owner":{"type":"string"},
    "enabled":{"type":"boolean"},"tools":{"$ref":"#/components/schemas/ToolRules"},
    "drift":{"enum":["accept","flag","quarantine"]},"metadata":{"type":"object"},"published":{"$ref":"#/components/schemas/Published"},
    "createdAt":{"$ref":"#/components/schemas/Time"},"updatedAt":{"$ref":"#/components/schemas/Time"},
    "version":{"type":"integer"}},
  "required":["id","name","transport","config","visibility","enabled","createdAt","updatedAt","version"],
  "additionalProperties":false})json"},
    {"Time", R"json({"type":"string","format":"date-time"})json"},
    {"Tool", R"json({
  "type":"object","description":"A tool as its server listed it last",
  "properties":{
    "server":{"type":"string"},"serverId":{"type":"string"},"name":{"type":"string","description":"The server's own name"},
    "publicName":{"type":"string","description":"The name at /mcp"},"title":{"type":"string"},
    "description":{"type":"string"},"definition":{"type":"object","description":"The tool as the server sent it"},
    "firstSeen":{"$ref":"#/components/schemas/Time"},"lastSeen":{"$ref":"#/components/schemas/Time"},
    "quarantined":{"type":"boolean"},"hidden":{"type":"boolean","description":"Callable but not listed"},
    "denied":{"type":"boolean","description":"Neither listed nor callable"},
    "omitted":{"type":"string","description":"Why clients would reject the tool, so that it is neither listed nor callable"}},
  "required":["server","serverId","name","publicName","firstSeen","lastSeen","quarantined","hidden","denied"],
  "additionalProperties":false})json"},
    {"TestResult", R"json({
  "type":"object",
  "properties":{
    "ok":{"type":"boolean"},"revision":{"type":"string"},"tools":{"type":"integer"},
    "steps":{"type":"array","items":{"$ref":"#/components/schemas/TestStep"}},
    "error":{"$ref":"#/components/schemas/Failure"},"stdout":{"type":"array","items":{"type":"string"}},"stderr":{"type":"array","items":{"type":"string"}}},
  "required":["ok","steps"],"additionalProperties":false})json"},
    {"TestStep", R"json({
  "type":"object","properties":{"name":{"type":"string"},"ok":{"type":"boolean"},"ms":{"type":"number"}},
  "required":["name","ok","ms"],"additionalProperties":false})json"},
    {"Failure", R"json({
  "type":"object","properties":{"code":{"type":"string"},"message":{"type":"string"},"remedy":{"type":"string"}},
  "required":["code","message","remedy"],"additionalProperties":false})json"},
    {"RefreshResult", R"json({
  "type":"object","properties":{"tools":{"type":"integer"},"added":{"$ref":"#/components/schemas/Names"},
    "removed":{"$ref":"#/components/schemas/Names"},"changed":{"$ref":"#/components/schemas/Names"}},
  "required":["tools","added","removed","changed"],"additionalProperties":false})json"},
    {"ServerState", R"json({
  "type":"object","properties":{"server":{"type":"string"},"state":{"type":"string"},
    "processes":{"type":"integer","description":"Processes or connections that the request has ended"}},
  "required":["server","state","processes"],"additionalProperties":false})json"},
    {"LogLines", R"json({
  "type":"object","description":"The last lines that the processes of a server wrote to stderr, secrets redacted",
  "properties":{"items":{"type":"array","items":{"type":"object",
    "properties":{"key":{"type":"string","description":"The session or user of the process"},"line":{"type":"string"}},
    "required":["line"],"additionalProperties":false}}},
  "required":["items"],"additionalProperties":false})json"},
    {"Process", R"json({
  "type":"object","description":"A process of a server, or a connection to it",
  "properties":{
    "server":{"type":"string"},"serverId":{"type":"string"},"key":{"type":"string"},"pid":{"type":"integer"},
    "state":{"type":"string"},"since":{"$ref":"#/components/schemas/Time"},"calls":{"type":"integer"},
    "waiting":{"type":"integer"},"starts":{"type":"integer"},"failures":{"type":"integer"},
    "healthy":{"type":"boolean"},"sharing":{"type":"string"},"connection":{"type":"string"},
    "memoryBytes":{"type":"integer"},"cpuSeconds":{"type":"number"},
    "error":{"$ref":"#/components/schemas/Failure"}},
  "required":["server","state","since","calls","healthy","sharing"],"additionalProperties":false})json"},
    {"Session", R"json({
  "type":"object","description":"A session of a client; `id` is a number that this gateway has given it, not the session id of MCP",
  "properties":{
    "id":{"type":"string"},"endpoint":{"type":"string"},"user":{"type":"string"},"token":{"type":"string"},
    "client":{"type":"string"},"address":{"type":"string"},"revision":{"type":"string"},"transport":{"type":"string"},
    "since":{"$ref":"#/components/schemas/Time"},"lastRequest":{"$ref":"#/components/schemas/Time"}},
  "required":["id"],"additionalProperties":false})json"},
    {"EndpointInput", R"json({
  "type":"object","description":"An endpoint that is created; it is served at /mcp/e/{name}",
  "properties":{
    "name":{"type":"string"},"title":{"type":"string"},"description":{"type":"string"},"enabled":{"type":"boolean"},
    "mode":{"enum":["direct","discover"]},"servers":{"$ref":"#/components/schemas/Names"},
    "tags":{"$ref":"#/components/schemas/Names"},"tools":{"$ref":"#/components/schemas/Names"},
    "deny":{"$ref":"#/components/schemas/Names"},"rename":{"type":"object","additionalProperties":{"type":"string"}},
    "pinned":{"$ref":"#/components/schemas/Names"},"users":{"$ref":"#/components/schemas/Names"},
    "groups":{"$ref":"#/components/schemas/Names"}},
  "required":["name"],"additionalProperties":false})json"},
    {"EndpointPatch", R"json({"type":"object","description":"A merge patch (RFC 7396) of an Endpoint"})json"},
    {"Endpoint", R"json({
  "type":"object",
  "properties":{
    "id":{"type":"string"},"name":{"type":"string"},"title":{"type":"string"},"description":{"type":"string"},
    "enabled":{"type":"boolean"},"mode":{"enum":["direct","discover"]},"servers":{"$ref":"#/components/schemas/Names"},
    "tags":{"$ref":"#/components/schemas/Names"},"tools":{"$ref":"#/components/schemas/Names"},
    "deny":{"$ref":"#/components/schemas/Names"},"rename":{"type":"object","additionalProperties":{"type":"string"}},
    "pinned":{"$ref":"#/components/schemas/Names"},"users":{"$ref":"#/components/schemas/Names"},
    "groups":{"$ref":"#/components/schemas/Names"},
    "createdAt":{"$ref":"#/components/schemas/Time"},"updatedAt":{"$ref":"#/components/schemas/Time"},
    "version":{"type":"integer"}},
  "required":["id","name","enabled","mode","createdAt","updatedAt","version"],"additionalProperties":false})json"},
    {"UserInput", R"json({
  "type":"object","properties":{"name":{"type":"string"},"title":{"type":"string"},"role":{"enum":["admin","user"]},
    "enabled":{"type":"boolean"}},"required":["name"],"additionalProperties":false})json"},
    {"UserPatch", R"json({"type":"object","description":"A merge patch (RFC 7396) of a User"})json"},
    {"User", R"json({
  "type":"object","properties":{"id":{"type":"string"},"name":{"type":"string"},"title":{"type":"string"},
    "role":{"enum":["admin","user"]},"enabled":{"type":"boolean"},
    "createdAt":{"$ref":"#/components/schemas/Time"},"updatedAt":{"$ref":"#/components/schemas/Time"},
    "version":{"type":"integer"}},
  "required":["id","name","role","enabled","createdAt","updatedAt","version"],"additionalProperties":false})json"},
    {"GroupInput", R"json({
  "type":"object","properties":{"name":{"type":"string"},"title":{"type":"string"},
    "members":{"$ref":"#/components/schemas/Names"}},"required":["name"],"additionalProperties":false})json"},
    {"GroupPatch", R"json({"type":"object","description":"A merge patch (RFC 7396) of a Group"})json"},
    {"Group", R"json({
  "type":"object","properties":{"id":{"type":"string"},"name":{"type":"string"},"title":{"type":"string"},
    "members":{"$ref":"#/components/schemas/Names"},
    "createdAt":{"$ref":"#/components/schemas/Time"},"updatedAt":{"$ref":"#/components/schemas/Time"},
    "version":{"type":"integer"}},
  "required":["id","name","createdAt","updatedAt","version"],"additionalProperties":false})json"},
    {"TokenInput", R"json({
  "type":"object","properties":{"user":{"type":"string","description":"The id or the name of a user"},
    "name":{"type":"string"},"scopes":{"$ref":"#/components/schemas/Names"},
    "expires":{"type":"string","description":"A point in time (RFC 3339) or a duration such as 90d or 12h"}},
  "required":["user"],"additionalProperties":false})json"},
    {"Token", R"json({
  "type":"object","properties":{"id":{"type":"string"},"name":{"type":"string"},"user":{"type":"string"},
    "prefix":{"type":"string"},"scopes":{"$ref":"#/components/schemas/Names"},
    "expiresAt":{"$ref":"#/components/schemas/Time"},"revokedAt":{"$ref":"#/components/schemas/Time"},
    "lastUsedAt":{"$ref":"#/components/schemas/Time"},"createdAt":{"$ref":"#/components/schemas/Time"},
    "updatedAt":{"$ref":"#/components/schemas/Time"},"version":{"type":"integer"},
    "token":{"type":"string","description":"The token itself; only in the response that created it"}},
  "required":["id","user","createdAt","version"],"additionalProperties":false})json"},
    {"SecretInput", R"json({
  "type":"object","description":"A value for all servers, for one server, or for one user at one server",
  "properties":{"name":{"type":"string","description":"Servers refer to it as ${secret:NAME}"},
    "value":{"type":"string","writeOnly":true},
    "server":{"type":"string","description":"The id or the name of a server"},
    "user":{"type":"string","description":"The id or the name of a user; users set values of their own"}},
  "required":["name","value"],"additionalProperties":false})json"},
    {"SecretPatch", R"json({
  "type":"object","properties":{"value":{"type":"string","writeOnly":true}},"required":["value"]})json"},
    {"Secret", R"json({
  "type":"object","description":"A secret without its value, which is never returned",
  "properties":{"id":{"type":"string"},"name":{"type":"string"},
    "server":{"type":"string","description":"The id of the server; absent: all servers"},
    "user":{"type":"string","description":"The id of the user; absent: all users"},
    "createdAt":{"$ref":"#/components/schemas/Time"},"updatedAt":{"$ref":"#/components/schemas/Time"},
    "version":{"type":"integer"}},
  "required":["id","name","createdAt","updatedAt","version"],"additionalProperties":false})json"},
    {"SecretReference", R"json({
  "type":"object","description":"A secret that a server refers to",
  "properties":{"name":{"type":"string"},
    "source":{"enum":["user","server","system","missing"],"description":"Whose value the caller's process gets"},
    "remedy":{"type":"string","description":"Who must provide a missing value, and how"}},
  "required":["name","source"],"additionalProperties":false})json"},
    {"SecretStatus", R"json({
  "type":"object","properties":{"usable":{"type":"boolean"},"problem":{"type":"string"},
    "keyId":{"type":"string"},"source":{"type":"string","description":"Where the gateway has the key from"},
    "dataKeys":{"type":"integer"},"secrets":{"type":"integer"}},
  "required":["usable","dataKeys","secrets"],"additionalProperties":false})json"},
    {"RekeyInput", R"json({
  "type":"object","properties":{
    "key":{"type":"boolean","default":true,"description":"Replace the key that is not in the database"},
    "dataKey":{"type":"boolean","default":false,"description":"Encrypt all values with a new data key"}},
  "additionalProperties":false})json"},
    {"RekeyResult", R"json({
  "type":"object","properties":{"keyId":{"type":"string"},"previousKeyId":{"type":"string"},
    "dataKeys":{"type":"integer"},"values":{"type":"integer"}},
  "required":["keyId","previousKeyId","dataKeys","values"],"additionalProperties":false})json"},
    {"ConfigValue", R"json({
  "type":"object","properties":{"value":{}},"required":["value"],"additionalProperties":false})json"},
    {"ConfigItem", R"json({
  "type":"object","description":"A value of the configuration with its definition",
  "properties":{"key":{"type":"string"},"category":{"type":"string"},"value":{},"default":{},"isDefault":{"type":"boolean"},
    "type":{"type":"string"},"scope":{"type":"string"},"minimum":{"type":["number","string"]},
    "maximum":{"type":["number","string"]},"choices":{"$ref":"#/components/schemas/Names"},
    "description":{"type":"string"},"applies":{"type":"string"}},
  "required":["key","value","default","isDefault","type","scope","description","applies"],
  "additionalProperties":false})json"},
    {"Drift", R"json({
  "type":"object","description":"A change of a tool, resource, template or prompt of a server",
  "properties":{"id":{"type":"string"},"server":{"type":"string","description":"The id of the server"},
    "kind":{"enum":["tool","resource","template","prompt"]},"name":{"type":"string"},
    "before":{"type":"object","description":"The entry as it was approved; absent for a new entry"},
    "after":{"type":"object"},"quarantined":{"type":"boolean"},
    "status":{"enum":["open","approved","rejected","reverted"]},
    "detectedAt":{"$ref":"#/components/schemas/Time"},"resolvedAt":{"$ref":"#/components/schemas/Time"},
    "resolvedBy":{"type":"string"}},
  "required":["id","server","kind","name","status","detectedAt"],"additionalProperties":false})json"},
});

}  // namespace

std::span<const ComponentSchema> component_schemas() noexcept {
  return kSchemas;
}

}  // namespace fairlead::admin
