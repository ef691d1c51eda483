// The handlers of the routes that rows.hpp does not serve. `call` outlives the task. Private to the layer.
#pragma once

#include "admin/call.hpp"

namespace fairlead::admin {

// Returns whether a rule of the server denies the tool, so that it does not exist for clients.
bool is_denied_tool(const registry::ToolRules& rules, std::string_view tool);
// Returns whether the client may see the change: a change of a denied tool only if it manages the server.
bool sees_drift(const Principal& reader, registry::Operation operation, const registry::Drift& drift,
                const registry::Server& server);

// configuration
Task<Result<Reply>> list_config(Call& call);
Task<Result<Reply>> get_config(Call& call);
Task<Result<Reply>> put_config(Call& call);
Task<Result<Reply>> reset_config(Call& call);

// identities
Task<Result<Reply>> create_token(Call& call);
Task<Result<Reply>> revoke_token(Call& call);

// secrets
Task<Result<Reply>> get_secret_status(Call& call);
Task<Result<Reply>> rekey_secrets(Call& call);
Task<Result<Reply>> list_server_secrets(Call& call);

// drift
Task<Result<Reply>> list_drift(Call& call);
Task<Result<Reply>> get_drift(Call& call);
Task<Result<Reply>> approve_drift(Call& call);
Task<Result<Reply>> reject_drift(Call& call);

// servers at run time
Task<Result<Reply>> list_server_tools(Call& call);
Task<Result<Reply>> list_all_tools(Call& call);
Task<Result<Reply>> test_server(Call& call);
Task<Result<Reply>> refresh_server(Call& call);
Task<Result<Reply>> restart_server(Call& call);
Task<Result<Reply>> stop_server(Call& call);
Task<Result<Reply>> get_server_logs(Call& call);
Task<Result<Reply>> list_processes(Call& call);

// sessions and events
Task<Result<Reply>> list_sessions(Call& call);
Task<Result<Reply>> remove_session(Call& call);
Task<Result<Reply>> stream_events(Call& call);

// documents
Task<Result<Reply>> get_openapi(Call& call);
Task<Result<Reply>> get_docs(Call& call);

}  // namespace fairlead::admin
