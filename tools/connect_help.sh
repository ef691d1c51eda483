#!/usr/bin/env bash
# connect_help.sh ADDRESS PROGRAM [CONFIG]: prints how to connect to the gateway that `make run` starts next.
# If ADDRESS is empty, the address is `listen` of the configuration file, or the default.
set -euo pipefail
program=$2
config=${3:-}
# config_value KEY: prints the string value of a key of the configuration file, if there is one.
config_value() { [[ -z $config ]] || sed -n "s/^$1 *= *\"\([^\"]*\)\".*/\1/p" "$config" | head -n 1; }
address=${1:-$(config_value listen)}
address=${address:-127.0.0.1:8808}
scheme=http
[[ -z $(config_value tls_certificate) ]] || scheme=https
url=$scheme://$address/mcp
endpoint=$url
curl_options=
if [[ $address == unix:* ]]; then
  url=http://localhost/mcp
  endpoint="/mcp on ${address#unix:}"
  curl_options="--unix-socket ${address#unix:} "
fi
example_call="demo__add '{\"a\":1,\"b\":2}'"
[[ -z $config ]] || example_call="SERVER__TOOL '{…}'"

printf '\nThe endpoint of the gateway is %s. Press Ctrl-C to stop the gateway. To connect:\n' "$endpoint"
[[ $address == unix:* ]] || cat <<TEXT

  From another terminal, in this directory
    build/release/fairlead tools $url
    build/release/fairlead tools $url $example_call

  With the TypeScript SDK
    await client.connect(new StreamableHTTPClientTransport(new URL("$url")))
TEXT
cat <<TEXT

  With curl (if clients need a token, add -H "Authorization: Bearer TOKEN")
    curl -s $curl_options$url -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \\
      -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/list' \\
      -d '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}'

TEXT
if [[ -n $config ]]; then
  cat <<TEXT
  From a desktop client that starts its servers (in its mcpServers)
    "fairlead": { "command": "$program", "args": ["serve", "--stdio", "--config", "$(realpath "$config")"] }

TEXT
else
  admin_url=${url%/mcp}
  cat <<TEXT
  To add a server of your own (docs/admin-api.md; the API is described at $admin_url/docs)
    curl -s $curl_options$admin_url/api/v1/mcp/servers -H "Authorization: Bearer \$(cat ${XDG_STATE_HOME:-~/.local/state}/fairlead/admin.token)" \\
      -H 'Content-Type: application/json' \\
      -d '{"name":"files","transport":"stdio","config":{"command":"npx","args":["-y","@modelcontextprotocol/server-filesystem","."]}}'

TEXT
fi
