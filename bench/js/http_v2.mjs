// An echo tool on the official TypeScript SDK, 2.x, over HTTP, stateless. Responds with JSON, or with SSE events if the argument is `sse`.
import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer, createMcpHandler } from '@modelcontextprotocol/server';
import { z } from 'zod';

function makeServer() {
  const server = new McpServer({ name: 'http_v2', version: '1.0.0' });
  server.registerTool(
    'echo',
    { description: 'Returns the message it was given', inputSchema: z.object({ message: z.string() }) },
    async ({ message }) => ({ content: [{ type: 'text', text: message }] }),
  );
  return server;
}

const responseMode = process.argv[2] === 'sse' ? 'sse' : 'json';
const handle = toNodeHandler(createMcpHandler(makeServer, { responseMode }));
const http = createServer((request, response) => handle(request, response));
http.listen(0, '127.0.0.1', () => console.log(http.address().port));
process.stdin.on('end', () => process.exit(0)).resume();
