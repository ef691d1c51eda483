// A server whose tool runs as a task, on the official TypeScript SDK, 1.x. Tasks of 2025-11-25 are experimental in that SDK.
import { InMemoryTaskMessageQueue, InMemoryTaskStore } from '@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { z } from 'zod';

const server = new McpServer(
  { name: 'tasks', version: '1.0.0' },
  {
    capabilities: { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } },
    taskStore: new InMemoryTaskStore(),
    taskMessageQueue: new InMemoryTaskMessageQueue(),
  },
);
server.experimental.tasks.registerToolTask(
  'greet',
  { inputSchema: { name: z.string() }, execution: { taskSupport: 'required' } },
  {
    async createTask({ name }, { taskStore, taskRequestedTtl }) {
      const task = await taskStore.createTask({ ttl: taskRequestedTtl, pollInterval: 30 });
      setTimeout(async () => {
        const result = { content: [{ type: 'text', text: `Hello, ${name}!` }] };
        await taskStore.storeTaskResult(task.taskId, 'completed', result);
      }, 100);
      return { task };
    },
    getTask: (_, { taskId, taskStore }) => taskStore.getTask(taskId),
    getTaskResult: (_, { taskId, taskStore }) => taskStore.getTaskResult(taskId),
  },
);
await server.connect(new StdioServerTransport());
