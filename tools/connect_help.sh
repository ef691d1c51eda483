#!/usr/bin/env bash
# How to connect to the gateway that `make run` is about to start: connect_help.sh ADDRESS PROGRAM [CONFIG]
# Without an address it is the file's, or the default.
set -euo pipefail
program=$2
config=${3:-}
of_file() { [[ -z $config ]] || sed -n "s/^$1 *= *\"\([^\"]*\)\".*/\1/p" "$config" | head -n 1; }
address=${1:-$(of_file listen)}
address=${address:-127.0.0.1:8808}
scheme=http
[[ -z $(of_file tls_certificate) ]] || scheme=https
url=$scheme://$address/mcp
endpoint=$url
options=
if [[ $address == unix:* ]]; then
  url=http://localhost/mcp
  endpoint="/mcp on ${address#unix:}"
  options="--unix-socket ${address#unix:} "
fi
words='"serve", "--stdio"'
call="demo__add '{\"a\":1,\"b\":2}'"
if [[ -n $config ]]; then
  words+=", \"--config\", \"$(realpath "$config")\""
  call="SERVER__TOOL '{…}'"
fi

printf '\nThe gateway'\''s endpoint is %s; end it with Ctrl-C. To connect:\n' "$endpoint"
[[ $address == unix:* ]] || cat <<TEXT

  From another terminal, here
    build/release/fairlead tools $url
    build/release/fairlead tools $url $call

  The TypeScript SDK
    await client.connect(new StreamableHTTPClientTransport(new URL("$url")))
TEXT
cat <<TEXT

  curl
    curl -s $options$url -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \\
      -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/list' \\
      -d '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}'

  A desktop client that starts its servers (in its mcpServers)
    "fairlead": { "command": "$program", "args": [$words] }

TEXT
