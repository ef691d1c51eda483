// v2.mjs REVISION FIXTURE_SERVER WEATHER ASK: the client of the official TypeScript SDK, 2.x, against our servers. REVISION may be
// `auto`: the SDK finds out by itself.
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { check } from './checks.mjs';

const args = process.argv.slice(2);

const options =
  args[0] === 'auto'
    ? { versionNegotiation: { mode: 'auto' } }
    : args[0] >= '2026'
      ? { versionNegotiation: { mode: { pin: args[0] } } }
      : { supportedProtocolVersions: [args[0]] };

async function open(command, capabilities, answers, heard) {
  const client = new Client({ name: 'sdk-v2', version: '1.0.0' }, { capabilities, ...options });
  for (const [method, handler] of Object.entries(answers)) client.setRequestHandler(method, handler);
  client.fallbackNotificationHandler = async ({ method, params }) => heard(method, params);
  const transport = new StdioClientTransport({ command, stderr: 'inherit' });
  await client.connect(transport);
  return { client, transport, negotiated: () => client.getNegotiatedProtocolVersion() };
}

// It turns the legacy code for a resource that is not there into the modern one.
await check({ open, callTool: (client, params, callOptions) => client.callTool(params, callOptions), notFound: -32602 }, args);
