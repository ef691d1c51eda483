// v1.mjs REVISION FIXTURE_SERVER WEATHER ASK: the client of the official TypeScript SDK, 1.x, against our servers.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import { check } from './checks.mjs';

const args = process.argv.slice(2);

// The SDK always offers the newest revision it knows. To make it speak an older one, the offer is rewritten on its way out.
class PinnedTransport extends StdioClientTransport {
  send(message) {
    if (message.method !== 'initialize') return super.send(message);
    return super.send({ ...message, params: { ...message.params, protocolVersion: args[0] } });
  }
}

const REQUESTS = {
  'sampling/createMessage': types.CreateMessageRequestSchema,
  'elicitation/create': types.ElicitRequestSchema,
  'roots/list': types.ListRootsRequestSchema,
};

async function open(command, capabilities, answers, heard) {
  const client = new Client({ name: 'sdk-v1', version: '1.0.0' }, { capabilities });
  for (const [method, handler] of Object.entries(answers)) client.setRequestHandler(REQUESTS[method], handler);
  client.fallbackNotificationHandler = async ({ method, params }) => heard(method, params);
  const transport = new PinnedTransport({ command, stderr: 'inherit' });
  let negotiated;
  transport.setProtocolVersion = (version) => (negotiated = version);
  await client.connect(transport);
  return { client, transport, negotiated: () => negotiated };
}

await check({ open, callTool: (client, params, options) => client.callTool(params, undefined, options), notFound: -32002 }, args);
