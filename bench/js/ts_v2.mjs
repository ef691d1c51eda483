// An echo tool on the official TypeScript SDK, 2.x.
import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

function makeServer() {
  const server = new McpServer({ name: 'ts_v2', version: '1.0.0' });
  server.registerTool(
    'echo',
    { description: 'Returns the message it was given', inputSchema: z.object({ message: z.string() }) },
    async ({ message }) => ({ content: [{ type: 'text', text: message }] }),
  );
  // Additional tools for the measurement of tools/list; the command line has their number.
  for (let i = 0; i < Number(process.argv[2] ?? 0); ++i) {
    server.registerTool(
      `tool${i}`,
      { description: 'Returns the message it was given', inputSchema: z.object({ message: z.string() }) },
      async ({ message }) => ({ content: [{ type: 'text', text: message }] }),
    );
  }
  return server;
}

serveStdio(makeServer);
