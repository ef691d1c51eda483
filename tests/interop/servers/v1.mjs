// v1.mjs [batches|http|json]: a server with tools, resources and prompts of every kind on the official TypeScript SDK, 1.x, on
// stdio or over HTTP. Over HTTP, responses are event streams (`http`) or JSON (`json`).
import { completable } from '@modelcontextprotocol/sdk/server/completable.js';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { SubscribeRequestSchema, UnsubscribeRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { randomUUID } from 'node:crypto';
import { createInterface } from 'node:readline';
import { PassThrough } from 'node:stream';
import { z } from 'zod';
import { MEDIA, PIXEL, named, text } from './contents.mjs';
import { EventStore, listen, wasCut } from './listen.mjs';

function make() {
  const server = new McpServer(
    { name: 'v1', version: '1.0.0' },
    { capabilities: { logging: {}, resources: { subscribe: true } }, instructions: 'Use it for tests.' },
  );
  server.registerTool('media', {}, async () => ({ content: MEDIA }));
  server.registerResource('pixel', 'pixel://red', {}, async (uri) => ({
    contents: [{ uri: uri.href, mimeType: 'image/png', blob: PIXEL }],
  }));

  server.registerTool('echo', { inputSchema: { message: z.string() } }, async ({ message }) => text(message));
  server.registerTool(
    'add',
    { inputSchema: { a: z.number(), b: z.number() }, outputSchema: { sum: z.number() } },
    async ({ a, b }) => ({ ...text(String(a + b)), structuredContent: { sum: a + b } }),
  );
  server.registerTool('fail', {}, async () => {
    throw new Error('it does not work');
  });
  server.registerTool('count', { inputSchema: { to: z.number(), cut: z.number().optional() } }, async ({ to, cut }, extra) => {
    for (let i = 1; i <= to; ++i) {
      const progressToken = extra._meta?.progressToken;
      if (progressToken !== undefined) {
        const params = { progressToken, progress: i, total: to, message: `step ${i}` };
        await extra.sendNotification({ method: 'notifications/progress', params });
      }
      await server.sendLoggingMessage({ level: 'info', logger: 'counter', data: `counted ${i}` }, extra.sessionId);
      if (i === cut) await wasCut;
    }
    await server.sendLoggingMessage({ level: 'debug', logger: 'counter', data: 'done' }, extra.sessionId);
    return text(`counted to ${to}`);
  });

  // Tools that send requests to the client.
  const form = (name, type) => ({ type: 'object', properties: { [name]: type }, required: [name] });
  server.registerTool('confirm', {}, async () => {
    const name = await server.server.elicitInput({ message: 'Who are you?', requestedSchema: form('name', { type: 'string' }) });
    if (name.action !== 'accept') return text(name.action);
    const requestedSchema = form('sure', { type: 'boolean', default: true });
    const sure = await server.server.elicitInput({ message: 'Are you sure?', requestedSchema });
    return text(`${name.content.name} is ${sure.content.sure ? 'sure' : 'not sure'}`);
  });
  server.registerTool('visit', {}, async () => {
    const params = { mode: 'url', message: 'Please sign in', url: 'https://example.com/sign-in', elicitationId: 'one' };
    return text((await server.server.elicitInput(params)).action);
  });
  server.registerTool('sample', { inputSchema: { message: z.string() } }, async ({ message }) => {
    const messages = [{ role: 'user', content: { type: 'text', text: message } }];
    const answer = await server.server.createMessage({ messages, maxTokens: 50 });
    return text(`${answer.model}: ${answer.content.text}`);
  });
  server.registerTool('where', {}, async () => text((await server.server.listRoots()).roots.map((one) => one.uri).join(' ')));

  // Sends a progress notification, so that the client knows that the call has begun, then waits until it is cancelled.
  let cancelled;
  const wasCancelled = new Promise((resolve) => (cancelled = resolve));
  server.registerTool('wait', {}, async (extra) => {
    extra.signal.addEventListener('abort', () => cancelled());
    const params = { progressToken: extra._meta?.progressToken, progress: 1 };
    await extra.sendNotification({ method: 'notifications/progress', params });
    await wasCancelled;
    return text('cancelled');
  });
  server.registerTool('cancelled', {}, async () => {
    await wasCancelled;
    return text('yes');
  });

  const subscribed = new Set();
  server.server.setRequestHandler(SubscribeRequestSchema, async ({ params }) => (subscribed.add(params.uri), {}));
  server.server.setRequestHandler(UnsubscribeRequestSchema, async ({ params }) => (subscribed.delete(params.uri), {}));
  server.registerTool('touch', {}, async () => {
    if (subscribed.has('memo://one')) await server.server.sendResourceUpdated({ uri: 'memo://one' });
    return text('touched');
  });
  server.registerTool('grow', {}, async () => {
    server.registerTool('grown', {}, async () => text('grown'));
    return text('grown');
  });

  const memo = (uri, words) => ({ contents: [{ uri: uri.href, mimeType: 'text/plain', text: words }] });
  server.registerResource('one', 'memo://one', {}, async (uri) => memo(uri, 'the first memo'));
  server.registerResource(
    'memos',
    new ResourceTemplate('memos://{name}', { list: undefined, complete: { name: named } }),
    {},
    async (uri, { name }) => memo(uri, `memo ${name}`),
  );
  server.registerPrompt('greet', { argsSchema: { name: completable(z.string(), named) } }, ({ name }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `Say hello to ${name}` } }],
  }));
  return server;
}

// With the argument `batches`, all messages that are sent in one turn are sent as one batch, as 2025-03-26 allows, and batches are
// accepted. The SDK itself does not support batches.
async function serveStdio(batches) {
  const input = new PassThrough();
  const transport = new StdioServerTransport(input);
  if (batches) {
    createInterface({ input: process.stdin })
      .on('line', (line) => [JSON.parse(line)].flat().forEach((one) => input.write(JSON.stringify(one) + '\n')))
      .on('close', () => process.exit(0));
    let batch = [];
    transport.send = async (message) => {
      if (batch.push(message) > 1) return;
      setTimeout(() => process.stdout.write(JSON.stringify(batch.splice(0)) + '\n'), 5);
    };
  } else {
    process.stdin.pipe(input);
  }
  await make().connect(transport);
}

// Each session has its own server and transport. A request without a session id may start a session.
const sessions = new Map();
async function transportFor(req) {
  const id = req.headers['mcp-session-id'];
  if (id !== undefined) return sessions.get(id);
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (made) => void sessions.set(made, transport),
    onsessionclosed: (closed) => void sessions.delete(closed),
    enableJsonResponse: process.argv[2] === 'json',
    eventStore: new EventStore(),
    retryInterval: 50,
  });
  await make().connect(transport);
  return transport;
}

async function serveHttp(req, res) {
  const { pathname, searchParams } = new URL(req.url, 'http://localhost');
  if (pathname === '/mcp') {
    const transport = await transportFor(req);
    return transport ? transport.handleRequest(req, res) : res.writeHead(404).end();
  }
  // HTTP+SSE, the transport of 2024-11-05.
  if (pathname === '/sse' && req.method === 'GET') {
    const transport = new SSEServerTransport('/messages', res);
    sessions.set(transport.sessionId, transport);
    return make().connect(transport);
  }
  const pair = pathname === '/messages' && sessions.get(searchParams.get('sessionId'));
  return pair ? pair.handlePostMessage(req, res) : res.writeHead(pathname === '/sse' ? 405 : 404).end();
}

if (['http', 'json'].includes(process.argv[2])) {
  listen(serveHttp, () => sessions.clear());
} else {
  await serveStdio(process.argv[2] === 'batches');
}
