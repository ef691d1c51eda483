// The client of the official TypeScript SDK, 2.x, with the interface that checks.mjs expects.
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
// The SDK 2.x has no WebSocket transport; that of 1.x works with it.
import { WebSocketClientTransport } from '@modelcontextprotocol/sdk/client/websocket.js';

const CLASSES = { Stdio: StdioClientTransport, Http: StreamableHTTPClientTransport, Sse: SSEClientTransport, WebSocket: WebSocketClientTransport };

function negotiation(revision) {
  if (revision === 'auto') return { versionNegotiation: { mode: 'auto' } };
  if (revision >= '2026') return { versionNegotiation: { mode: { pin: revision } } };
  return { supportedProtocolVersions: [revision] };
}

export function kind(revision) {
  async function open(place, capabilities, answers, heard) {
    const client = new Client({ name: 'sdk-v2', version: '1.0.0' }, { capabilities, ...negotiation(revision) });
    for (const [method, handler] of Object.entries(answers)) client.setRequestHandler(method, handler);
    client.fallbackNotificationHandler = async ({ method, params }) => heard(method, params);
    await client.connect(place.transport(CLASSES));
    return { client, negotiated: () => client.getNegotiatedProtocolVersion() };
  }
  // The SDK converts the legacy error code for an unknown resource to the modern one.
  return { open, callTool: (client, params, options) => client.callTool(params, options), notFound: -32602 };
}
