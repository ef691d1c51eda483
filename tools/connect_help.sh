#!/usr/bin/env bash
# How to connect to the gateway that `make run` is about to start: connect_help.sh ADDRESS PROGRAM [CONFIG]
set -euo pipefail
url=http://$1/mcp
words='"serve", "--stdio"'
call="demo__add '{\"a\":1,\"b\":2}'"
if [[ -n ${3:-} ]]; then
  words+=", \"--config\", \"$(realpath "$3")\""
  call="SERVER__TOOL '{…}'"
fi
cat <<TEXT

The gateway's endpoint is $url; end it with Ctrl-C. To connect:

  From another terminal, here
    build/release/fairlead tools $url
    build/release/fairlead tools $url $call

  curl
    curl -s $url -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \\
      -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/list' \\
      -d '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}'

  A desktop client that starts its servers (in its mcpServers)
    "fairlead": { "command": "$2", "args": [$words] }

  The TypeScript SDK
    await client.connect(new StreamableHTTPClientTransport(new URL("$url")))

TEXT
