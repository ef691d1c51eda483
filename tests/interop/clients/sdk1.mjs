// The client of the official TypeScript SDK, 1.x, with the interface that checks.mjs expects.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { WebSocketClientTransport } from '@modelcontextprotocol/sdk/client/websocket.js';
import * as types from '@modelcontextprotocol/sdk/types.js';

const CLASSES = { Stdio: StdioClientTransport, Http: StreamableHTTPClientTransport, Sse: SSEClientTransport, WebSocket: WebSocketClientTransport };

// The SDK always offers the newest revision that it supports. For an older revision, the outgoing `initialize` is rewritten.
function pin(transport, revision, negotiated) {
  const send = transport.send.bind(transport);
  transport.send = (message, options) => {
    if (message.method !== 'initialize') return send(message, options);
    return send({ ...message, params: { ...message.params, protocolVersion: revision } }, options);
  };
  const set = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (version) => (negotiated(version), set?.(version));
  return transport;
}

const REQUESTS = {
  'sampling/createMessage': types.CreateMessageRequestSchema,
  'elicitation/create': types.ElicitRequestSchema,
  'roots/list': types.ListRootsRequestSchema,
};

export function kind(revision) {
  async function open(place, capabilities, answers, heard) {
    const client = new Client({ name: 'sdk-v1', version: '1.0.0' }, { capabilities });
    for (const [method, handler] of Object.entries(answers)) client.setRequestHandler(REQUESTS[method], handler);
    client.fallbackNotificationHandler = async ({ method, params }) => heard(method, params);
    let negotiated;
    await client.connect(pin(place.transport(CLASSES), revision, (version) => (negotiated = version)));
    return { client, negotiated: () => negotiated };
  }
  return { open, callTool: (client, params, options) => client.callTool(params, undefined, options), notFound: -32002 };
}
