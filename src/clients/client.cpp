// The table of the clients.
#include "clients/client.hpp"

#include <algorithm>
#include <array>

#include "clients/entry_format.hpp"

namespace fairlead::clients {

namespace {

using enum Meaning;
using Keys = std::span<const KeyMeaning>;

constexpr KeyMeaning kProgramKeys[] = {{"command", command}, {"args", args}, {"env", env}};
constexpr KeyMeaning kCommonKeys[] = {
    {"command", command}, {"args", args}, {"env", env}, {"url", url}, {"headers", headers}};
constexpr KeyMeaning kTypedKeys[] = {{"type", transport}, {"command", command}, {"args", args},
                                     {"env", env},        {"url", url},         {"headers", headers}};
constexpr KeyMeaning kCursorKeys[] = {{"command", command},  {"args", args}, {"env", env},
                                      {"envFile", env_file}, {"url", url},   {"headers", headers}};
constexpr KeyMeaning kEditorKeys[] = {{"type", transport}, {"command", command},  {"args", args},
                                      {"env", env},        {"envFile", env_file}, {"cwd", cwd},
                                      {"url", url},        {"headers", headers}};
constexpr KeyMeaning kCopilotKeys[] = {{"type", transport}, {"command", command}, {"args", args},
                                       {"env", env},        {"url", url},         {"headers", headers},
                                       {"tools", allow}};
constexpr KeyMeaning kCodexKeys[] = {{"command", command},
                                     {"args", args},
                                     {"env", env},
                                     {"env_vars", env_names},
                                     {"cwd", cwd},
                                     {"url", url},
                                     {"bearer_token_env_var", bearer_variable},
                                     {"http_headers", headers},
                                     {"env_http_headers", env_headers},
                                     {"startup_timeout_sec", start_timeout, Unit::seconds},
                                     {"startup_timeout_ms", start_timeout, Unit::milliseconds},
                                     {"tool_timeout_sec", call_timeout, Unit::seconds},
                                     {"enabled", enabled},
                                     {"enabled_tools", allow},
                                     {"disabled_tools", deny}};
constexpr KeyMeaning kGeminiKeys[] = {{"command", command},
                                      {"args", args},
                                      {"env", env},
                                      {"cwd", cwd},
                                      {"httpUrl", http_url},
                                      {"url", sse_url},
                                      {"headers", headers},
                                      {"timeout", call_timeout, Unit::milliseconds},
                                      {"includeTools", allow},
                                      {"excludeTools", deny},
                                      {"description", description}};
constexpr KeyMeaning kWindsurfKeys[] = {{"command", command},   {"args", args},       {"env", env},
                                        {"serverUrl", url},     {"headers", headers}, {"disabled", disabled},
                                        {"disabledTools", deny}};
constexpr KeyMeaning kZedKeys[] = {{"command", command}, {"args", args},       {"env", env},
                                   {"url", url},         {"headers", headers}, {"enabled", enabled}};
constexpr KeyMeaning kClineKeys[] = {{"type", transport},
                                     {"transportType", transport},
                                     {"command", command},
                                     {"args", args},
                                     {"env", env},
                                     {"cwd", cwd},
                                     {"url", url},
                                     {"headers", headers},
                                     {"timeout", call_timeout, Unit::seconds},
                                     {"disabled", disabled}};
constexpr KeyMeaning kRooKeys[] = {{"type", transport},    {"command", command},
                                   {"args", args},         {"env", env},
                                   {"cwd", cwd},           {"url", url},
                                   {"headers", headers},   {"timeout", call_timeout, Unit::seconds},
                                   {"disabled", disabled}, {"disabledTools", deny}};
constexpr KeyMeaning kContinueKeys[] = {
    {"name", name},       {"type", transport},
    {"command", command}, {"args", args},
    {"env", env},         {"cwd", cwd},
    {"url", url},         {"requestOptions", request_options},
    {"apiKey", api_key},  {"connectionTimeout", start_timeout, Unit::milliseconds}};
constexpr KeyMeaning kGooseKeys[] = {{"type", transport},
                                     {"name", name},
                                     {"description", description},
                                     {"cmd", command},
                                     {"args", args},
                                     {"envs", env},
                                     {"env_keys", env_secrets},
                                     {"uri", url},
                                     {"headers", headers},
                                     {"timeout", call_timeout, Unit::seconds},
                                     {"enabled", enabled},
                                     {"available_tools", allow}};
constexpr KeyMeaning kOpencodeKeys[] = {
    {"type", transport}, {"command", command_line}, {"environment", env},  {"cwd", cwd},
    {"url", url},        {"headers", headers},      {"timeout", timeouts}, {"disabled", disabled},
    {"enabled", enabled}};
constexpr KeyMeaning kKiroKeys[] = {{"command", command},   {"args", args},       {"env", env},
                                    {"url", url},           {"headers", headers}, {"disabled", disabled},
                                    {"disabledTools", deny}};
constexpr KeyMeaning kAmazonQKeys[] = {{"type", transport},
                                       {"command", command},
                                       {"args", args},
                                       {"env", env},
                                       {"url", url},
                                       {"headers", headers},
                                       {"timeout", call_timeout, Unit::milliseconds},
                                       {"disabled", disabled},
                                       {"disabledTools", deny}};
constexpr KeyMeaning kFactoryKeys[] = {{"type", transport},   {"command", command}, {"args", args},
                                       {"env", env},          {"url", url},         {"headers", headers},
                                       {"disabled", disabled}};
constexpr KeyMeaning kVibeKeys[] = {{"name", name},
                                    {"transport", transport},
                                    {"command", command},
                                    {"args", args},
                                    {"env", env},
                                    {"url", url},
                                    {"headers", headers},
                                    {"startup_timeout_sec", start_timeout, Unit::seconds},
                                    {"tool_timeout_sec", call_timeout, Unit::seconds}};
// Keys that mean the same wherever they occur, if the client does not say otherwise.
constexpr KeyMeaning kSharedKeys[] = {{"type", transport},
                                      {"transport", transport},
                                      {"transportType", transport},
                                      {"command", command},
                                      {"args", args},
                                      {"env", env},
                                      {"environment", env},
                                      {"envFile", env_file},
                                      {"cwd", cwd},
                                      {"url", url},
                                      {"serverUrl", url},
                                      {"httpUrl", http_url},
                                      {"headers", headers},
                                      {"disabled", disabled},
                                      {"enabled", enabled},
                                      {"description", description},
                                      {"disabledTools", deny},
                                      {"includeTools", allow},
                                      {"excludeTools", deny}};

constexpr VariableSyntax kNoVariables{};
constexpr VariableSyntax kPlain{.plain = true};
constexpr VariableSyntax kPlainWithDefaults{.plain = true, .defaults = true};
constexpr std::uint8_t kOnlyHeaders = static_cast<std::uint8_t>(Position::headers);
constexpr std::uint8_t kEnvAndHeaders = kOnlyHeaders | static_cast<std::uint8_t>(Position::env);
constexpr VariableSyntax kCursorVariables{.env = true, .editor = true};
constexpr VariableSyntax kEditorVariables{.env = true, .editor = true, .inputs = true};
constexpr VariableSyntax kShellVariables{.plain = true, .dollar = true, .percent = true};
constexpr VariableSyntax kWindsurfVariables{.env = true, .file = true};
constexpr TransportWords kWords{"stdio", "http", "sse"};

constexpr EntryFormat kProgramFormat{.keys = kProgramKeys, .words = {}, .variables = kNoVariables};
constexpr EntryFormat kUrlFormat{.keys = kCommonKeys, .words = {}, .variables = kNoVariables};
constexpr EntryFormat kPlainUrlFormat{.keys = kCommonKeys, .words = {}, .variables = kPlain};
constexpr EntryFormat kClaudeCodeFormat{.keys = kTypedKeys, .words = kWords, .variables = kPlainWithDefaults};
constexpr EntryFormat kCursorFormat{.keys = kCursorKeys, .words = {}, .variables = kCursorVariables};
constexpr EntryFormat kEditorFormat{.keys = kEditorKeys, .words = kWords, .variables = kEditorVariables};
constexpr EntryFormat kCopilotFormat{
    .keys = kCopilotKeys, .words = {"local", "http", "sse"}, .variables = kPlain};
constexpr EntryFormat kCodexFormat{
    .keys = kCodexKeys, .words = {}, .variables = kNoVariables, .has_sse = false};
constexpr EntryFormat kGeminiFormat{
    .keys = kGeminiKeys, .words = {}, .variables = kShellVariables, .url_is_sse = true};
constexpr EntryFormat kWindsurfFormat{.keys = kWindsurfKeys, .words = {}, .variables = kWindsurfVariables};
constexpr EntryFormat kAntigravityFormat{.keys = kWindsurfKeys, .words = {}, .variables = kNoVariables};
constexpr EntryFormat kZedFormat{.keys = kZedKeys, .words = {}, .variables = kNoVariables};
constexpr EntryFormat kClineFormat{.keys = kClineKeys,
                                   .words = {"stdio", "streamableHttp", "sse"},
                                   .variables = {.env = true},
                                   .url_is_sse = true};
constexpr EntryFormat kRooFormat{
    .keys = kRooKeys, .words = {"stdio", "streamable-http", "sse"}, .variables = kCursorVariables};
constexpr EntryFormat kContinueFormat{
    .keys = kContinueKeys, .words = {"stdio", "streamable-http", "sse"}, .variables = {.mustache = true}};
constexpr EntryFormat kGooseFormat{.keys = kGooseKeys,
                                   .words = {"stdio", "streamable_http", "sse"},
                                   .variables = {.plain = true, .positions = kOnlyHeaders},
                                   .has_sse = false};
constexpr EntryFormat kOpencodeFormat{
    .keys = kOpencodeKeys, .words = {"local", "remote", "remote"}, .variables = {.braces = true}};
constexpr EntryFormat kKiroFormat{
    .keys = kKiroKeys, .words = {}, .variables = {.plain = true, .positions = kEnvAndHeaders}};
constexpr EntryFormat kAmazonQFormat{
    .keys = kAmazonQKeys, .words = {"stdio", "http", ""}, .variables = kPlain, .has_sse = false};
constexpr EntryFormat kFactoryFormat{
    .keys = kFactoryKeys, .words = {"stdio", "http", "sse"}, .variables = kPlain};
constexpr EntryFormat kVibeFormat{.keys = kVibeKeys,
                                  .words = {"stdio", "streamable-http", ""},
                                  .variables = kNoVariables,
                                  .has_sse = false};
constexpr EntryFormat kGenericFormat{.keys = kSharedKeys,
                                     .words = kWords,
                                     .variables = {.plain = true,
                                                   .defaults = true,
                                                   .env = true,
                                                   .file = true,
                                                   .secret = true,
                                                   .editor = true,
                                                   .inputs = true}};

constexpr std::string_view kMcpServers[] = {"mcpServers"};
constexpr std::string_view kServers[] = {"servers"};
constexpr std::string_view kDevContainer[] = {"customizations", "vscode", "mcp", "servers"};
constexpr std::string_view kCodexTable[] = {"mcp_servers"};
constexpr std::string_view kZedServers[] = {"context_servers"};
constexpr std::string_view kExtensions[] = {"extensions"};
constexpr std::string_view kOpencodeServers[] = {"mcp", "servers"};
constexpr std::string_view kAmpServers[] = {"amp.mcpServers"};

constexpr FileScope kUser = FileScope::user;
constexpr FileScope kProject = FileScope::project;
constexpr FileScope kManaged = FileScope::managed;

constexpr FileLocation anywhere(FileScope scope, std::string_view path) {
  return {scope, true, true, true, path};
}
constexpr FileLocation unix_only(FileScope scope, std::string_view path) {
  return {scope, true, true, false, path};
}
constexpr FileLocation windows_only(FileScope scope, std::string_view path) {
  return {scope, false, false, true, path};
}

constexpr FileLocation linux_only(FileScope scope, std::string_view path) {
  return {scope, true, false, false, path};
}
constexpr FileLocation macos_only(FileScope scope, std::string_view path) {
  return {scope, false, true, false, path};
}

constexpr FileLocation kClaudeDesktopFiles[] = {anywhere(kUser, "{app}/Claude/claude_desktop_config.json")};
constexpr FileLocation kClaudeCodeFiles[] = {anywhere(kUser, "{home}/.claude.json"),
                                             anywhere(kProject, "{project}/.mcp.json"),
                                             linux_only(kManaged, "{managed}/claude-code/managed-mcp.json"),
                                             macos_only(kManaged, "{managed}/ClaudeCode/managed-mcp.json")};
constexpr FileLocation kCursorFiles[] = {anywhere(kUser, "{home}/.cursor/mcp.json"),
                                         anywhere(kProject, "{project}/.cursor/mcp.json")};
constexpr FileLocation kVscodeFiles[] = {anywhere(kUser, "{app}/Code/User/mcp.json"),
                                         anywhere(kUser, "{app}/Code - Insiders/User/mcp.json"),
                                         anywhere(kUser, "{home}/.vscode-server/data/User/mcp.json"),
                                         anywhere(kProject, "{project}/.vscode/mcp.json")};
constexpr FileLocation kDevContainerFiles[] = {
    anywhere(kProject, "{project}/.devcontainer/devcontainer.json"),
    anywhere(kProject, "{project}/.devcontainer.json")};
constexpr FileLocation kCopilotFiles[] = {
    anywhere(kUser, "{xdg}/.copilot/mcp-config.json"), anywhere(kUser, "{home}/.copilot/mcp-config.json"),
    anywhere(kProject, "{project}/.github/mcp.json"), anywhere(kProject, "{project}/.mcp.json")};
constexpr FileLocation kCodexFiles[] = {anywhere(kUser, "{codex}/config.toml"),
                                        anywhere(kProject, "{project}/.codex/config.toml")};
constexpr FileLocation kGeminiFiles[] = {anywhere(kUser, "{home}/.gemini/settings.json"),
                                         anywhere(kProject, "{project}/.gemini/settings.json"),
                                         linux_only(kManaged, "{managed}/gemini-cli/settings.json"),
                                         macos_only(kManaged, "{managed}/GeminiCli/settings.json")};
constexpr FileLocation kAntigravityFiles[] = {anywhere(kUser, "{home}/.gemini/antigravity/mcp_config.json")};
constexpr FileLocation kWindsurfFiles[] = {anywhere(kUser, "{home}/.codeium/windsurf/mcp_config.json"),
                                           anywhere(kUser, "{home}/.codeium/mcp_config.json")};
constexpr FileLocation kZedFiles[] = {unix_only(kUser, "{config}/zed/settings.json"),
                                      windows_only(kUser, "{app}/Zed/settings.json"),
                                      anywhere(kProject, "{project}/.zed/settings.json")};
constexpr FileLocation kClineFiles[] = {
    anywhere(kUser, "{app}/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"),
    anywhere(kUser, "{home}/.cline/mcp.json")};
constexpr FileLocation kRooFiles[] = {
    anywhere(kUser, "{app}/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"),
    anywhere(kProject, "{project}/.roo/mcp.json")};
constexpr FileLocation kContinueFiles[] = {anywhere(kUser, "{home}/.continue/config.yaml"),
                                           anywhere(kUser, "{home}/.continue/mcpServers/*.yaml"),
                                           anywhere(kUser, "{home}/.continue/mcpServers/*.json"),
                                           anywhere(kProject, "{project}/.continue/mcpServers/*.yaml"),
                                           anywhere(kProject, "{project}/.continue/mcpServers/*.json")};
constexpr FileLocation kGooseFiles[] = {unix_only(kUser, "{config}/goose/config.yaml"),
                                        windows_only(kUser, "{app}/Block/goose/config/config.yaml")};
constexpr FileLocation kOpencodeFiles[] = {anywhere(kUser, "{config}/opencode/opencode.json"),
                                           anywhere(kUser, "{config}/opencode/opencode.jsonc"),
                                           windows_only(kUser, "{local}/opencode/opencode.json"),
                                           anywhere(kProject, "{project}/opencode.json"),
                                           anywhere(kProject, "{project}/opencode.jsonc"),
                                           unix_only(kManaged, "{managed}/opencode/opencode.json"),
                                           unix_only(kManaged, "{managed}/opencode/opencode.jsonc")};
constexpr FileLocation kKiroFiles[] = {anywhere(kUser, "{home}/.kiro/settings/mcp.json"),
                                       anywhere(kProject, "{project}/.kiro/settings/mcp.json")};
constexpr FileLocation kAmazonQFiles[] = {anywhere(kUser, "{home}/.aws/amazonq/mcp.json"),
                                          anywhere(kUser, "{home}/.aws/amazonq/cli-agents/*.json"),
                                          anywhere(kProject, "{project}/.amazonq/mcp.json")};
constexpr FileLocation kLmStudioFiles[] = {anywhere(kUser, "{home}/.lmstudio/mcp.json")};
constexpr FileLocation kJunieFiles[] = {anywhere(kUser, "{home}/.junie/mcp/mcp.json"),
                                        anywhere(kProject, "{project}/.junie/mcp/mcp.json")};
constexpr FileLocation kAmpFiles[] = {unix_only(kUser, "{config}/amp/settings.json"),
                                      windows_only(kUser, "{app}/amp/settings.json")};
constexpr FileLocation kTraeFiles[] = {anywhere(kUser, "{app}/Trae/User/mcp.json")};
constexpr FileLocation kKimiFiles[] = {anywhere(kUser, "{home}/.kimi/mcp.json")};
constexpr FileLocation kFactoryFiles[] = {anywhere(kUser, "{home}/.factory/mcp.json")};
constexpr FileLocation kQoderFiles[] = {windows_only(kUser, "{app}/Qoder/SharedClientCache/mcp.json"),
                                        unix_only(kUser, "{home}/.qoder/mcp.json")};
constexpr FileLocation kVibeFiles[] = {anywhere(kUser, "{home}/.vibe/config.toml")};

constexpr FileFormat kJson = FileFormat::json;
constexpr FileFormat kToml = FileFormat::toml;
constexpr FileFormat kYaml = FileFormat::yaml;
constexpr ConnectBy kHttp = ConnectBy::http;
constexpr ConnectBy kStdio = ConnectBy::stdio;
constexpr ConnectBy kNothing = ConnectBy::nothing;

constexpr std::array kClients = {
    Client{"claude-desktop", "Claude Desktop", kJson, kStdio, kMcpServers, false, kClaudeDesktopFiles,
           &kProgramFormat},
    Client{"claude-code", "Claude Code", kJson, kHttp, kMcpServers, false, kClaudeCodeFiles,
           &kClaudeCodeFormat},
    Client{"cursor", "Cursor", kJson, kHttp, kMcpServers, false, kCursorFiles, &kCursorFormat},
    Client{"vscode", "VS Code", kJson, kHttp, kServers, false, kVscodeFiles, &kEditorFormat},
    Client{"devcontainer", "dev container", kJson, kNothing, kDevContainer, false, kDevContainerFiles,
           &kEditorFormat},
    Client{"copilot-cli", "Copilot CLI", kJson, kHttp, kMcpServers, false, kCopilotFiles, &kCopilotFormat},
    Client{"codex", "Codex", kToml, kHttp, kCodexTable, false, kCodexFiles, &kCodexFormat},
    Client{"gemini", "Gemini CLI", kJson, kHttp, kMcpServers, false, kGeminiFiles, &kGeminiFormat},
    Client{"antigravity", "Antigravity", kJson, kHttp, kMcpServers, false, kAntigravityFiles,
           &kAntigravityFormat},
    Client{"windsurf", "Windsurf", kJson, kHttp, kMcpServers, false, kWindsurfFiles, &kWindsurfFormat},
    Client{"zed", "Zed", kJson, kHttp, kZedServers, false, kZedFiles, &kZedFormat},
    Client{"cline", "Cline", kJson, kHttp, kMcpServers, false, kClineFiles, &kClineFormat},
    Client{"roo", "Roo Code", kJson, kNothing, kMcpServers, false, kRooFiles, &kRooFormat},
    Client{"continue", "Continue", kYaml, kHttp, kMcpServers, true, kContinueFiles, &kContinueFormat},
    Client{"goose", "Goose", kYaml, kHttp, kExtensions, false, kGooseFiles, &kGooseFormat},
    Client{"opencode", "opencode", kJson, kHttp, kOpencodeServers, false, kOpencodeFiles, &kOpencodeFormat},
    Client{"kiro", "Kiro", kJson, kHttp, kMcpServers, false, kKiroFiles, &kKiroFormat},
    Client{"amazon-q", "Amazon Q", kJson, kHttp, kMcpServers, false, kAmazonQFiles, &kAmazonQFormat},
    Client{"lm-studio", "LM Studio", kJson, kHttp, kMcpServers, false, kLmStudioFiles, &kCursorFormat},
    Client{"junie", "JetBrains Junie", kJson, kStdio, kMcpServers, false, kJunieFiles, &kProgramFormat},
    Client{"amp", "Amp", kJson, kHttp, kAmpServers, false, kAmpFiles, &kPlainUrlFormat},
    Client{"trae", "Trae", kJson, kHttp, kMcpServers, false, kTraeFiles, &kUrlFormat},
    Client{"kimi", "Kimi", kJson, kHttp, kMcpServers, false, kKimiFiles, &kUrlFormat},
    Client{"factory", "Factory", kJson, kHttp, kMcpServers, false, kFactoryFiles, &kFactoryFormat},
    Client{"qoder", "Qoder", kJson, kHttp, kMcpServers, false, kQoderFiles, &kUrlFormat},
    Client{"vibe", "Mistral Vibe", kToml, kHttp, kCodexTable, true, kVibeFiles, &kVibeFormat},
};

const KeyMeaning* find_key(Keys keys, std::string_view key) noexcept {
  const auto found = std::ranges::find(keys, key, &KeyMeaning::key);
  return found == keys.end() ? nullptr : &*found;
}

}  // namespace

std::span<const Client> clients() {
  return kClients;
}

const Client* find_client(std::string_view id) {
  const auto found = std::ranges::find(kClients, id, &Client::id);
  return found == kClients.end() ? nullptr : &*found;
}

std::string client_ids() {
  std::string ids;
  for (const Client& client : kClients) ids += (ids.empty() ? "" : ", ") + std::string(client.id);
  return ids;
}

const KeyMeaning* EntryFormat::key_for(Meaning meaning) const noexcept {
  const auto found = std::ranges::find(keys, meaning, &KeyMeaning::meaning);
  return found == keys.end() ? nullptr : &*found;
}

const KeyMeaning* meaning_of(const EntryFormat& format, std::string_view key) noexcept {
  const KeyMeaning* own = find_key(format.keys, key);
  return own != nullptr ? own : find_key(kSharedKeys, key);
}

const EntryFormat& generic_format() noexcept {
  return kGenericFormat;
}

}  // namespace fairlead::clients
