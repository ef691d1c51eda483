// An echo tool on the official TypeScript SDK, 1.x, over HTTP with sessions. Responds with JSON, or with SSE events if the argument is `sse`.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

const enableJsonResponse = process.argv[2] !== 'sse';
const sessions = new Map();

async function transportFor(id) {
  if (sessions.has(id)) return sessions.get(id);
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    enableJsonResponse,
    onsessioninitialized: (sessionId) => sessions.set(sessionId, transport),
  });
  const server = new McpServer({ name: 'http_v1', version: '1.0.0' });
  server.registerTool(
    'echo',
    { description: 'Returns the message it was given', inputSchema: { message: z.string() } },
    async ({ message }) => ({ content: [{ type: 'text', text: message }] }),
  );
  await server.connect(transport);
  return transport;
}

const http = createServer(async (request, response) => {
  const transport = await transportFor(request.headers['mcp-session-id']);
  await transport.handleRequest(request, response);
});
http.listen(0, '127.0.0.1', () => console.log(http.address().port));
process.stdin.on('end', () => process.exit(0)).resume();
