// tasks.mjs SERVER: the client of the official TypeScript SDK, 1.x, calls a tool that runs as a task and elicits meanwhile.
import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { CallToolResultSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const client = new Client({ name: 'v1', version: '1.0.0' }, { capabilities: { elicitation: { form: {} } } });
let related;
client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
  related = params._meta['io.modelcontextprotocol/related-task'].taskId;
  return { action: 'accept', content: { name: 'Ada' } };
});
await client.connect(new StdioClientTransport({ command: process.argv[2] }));

const { tools } = await client.listTools();
assert.equal(tools.find((tool) => tool.name === 'greet').execution.taskSupport, 'required');
const call = { name: 'greet', arguments: {} };
const seen = [];
let id;
for await (const message of client.experimental.tasks.callToolStream(call, CallToolResultSchema, { task: { ttl: 60000 } })) {
  seen.push(message.type);
  if (message.type === 'taskCreated') id = message.task.taskId;
  if (message.type === 'error') throw message.error;
  if (message.type === 'result') assert.equal(message.result.content[0].text, 'Hello, Ada!');
}
assert.equal(seen[0], 'taskCreated');
assert.equal(seen.at(-1), 'result');
assert.equal(related, id);
const { tasks } = await client.experimental.tasks.listTasks();
assert.deepEqual(tasks.map((task) => [task.taskId, task.status]), [[id, 'completed']]);
assert.equal((await client.experimental.tasks.getTask(id)).ttl, 60000);
await assert.rejects(client.experimental.tasks.cancelTask(id));

const waiting = client.experimental.tasks.callToolStream({ name: 'wait', arguments: {} }, CallToolResultSchema, { task: {} });
const created = (await waiting.next()).value;
assert.equal((await client.experimental.tasks.cancelTask(created.task.taskId)).status, 'cancelled');
await client.close();
