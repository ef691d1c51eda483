// An echo tool on the official TypeScript SDK, 1.x.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { z } from 'zod';

const server = new McpServer({ name: 'ts_v1', version: '1.0.0' });
server.registerTool(
  'echo',
  { description: 'Returns the message it was given', inputSchema: { message: z.string() } },
  async ({ message }) => ({ content: [{ type: 'text', text: message }] }),
);
// Additional tools for the measurement of tools/list; the command line has their number.
for (let i = 0; i < Number(process.argv[2] ?? 0); ++i) {
  server.registerTool(
    `tool${i}`,
    { description: 'Returns the message it was given', inputSchema: { message: z.string() } },
    async ({ message }) => ({ content: [{ type: 'text', text: message }] }),
  );
}
await server.connect(new StdioServerTransport());
