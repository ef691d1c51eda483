// v2.mjs [http|json]: a server with tools, resources and prompts of every kind on the official TypeScript SDK, 2.x, for both eras,
// on stdio or over HTTP. Over HTTP, responses are event streams (`http`; in the modern era only if the tool sends notifications
// first) or JSON (`json`).
import { getRequestListener } from '@hono/node-server';
import {
  McpServer,
  ResourceTemplate,
  WebStandardStreamableHTTPServerTransport,
  acceptedContent,
  completable,
  createMcpHandler,
  inputRequired,
  inputResponse,
  isLegacyRequest,
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';
import { MEDIA, PIXEL, named, text } from './contents.mjs';
import { EventStore, listen, wasCut } from './listen.mjs';

function addAsking(server) {
  const form = (name, type) => ({ type: 'object', properties: { [name]: type }, required: [name] });
  const ask = (key, request, requestState) => inputRequired({ inputRequests: { [key]: request }, requestState });
  server.registerTool('confirm', {}, async (ctx) => {
    const answers = ctx.mcpReq.inputResponses;
    const sure = acceptedContent(answers, 'sure');
    // In the second round, the request state contains the response of the first.
    if (sure) return text(`${ctx.mcpReq.requestState()} is ${sure.sure ? 'sure' : 'not sure'}`);
    const name = inputResponse(answers, 'name');
    if (name.kind === 'missing') {
      return ask('name', inputRequired.elicit({ message: 'Who are you?', requestedSchema: form('name', { type: 'string' }) }));
    }
    if (name.action !== 'accept') return text(name.action);
    const requestedSchema = form('sure', { type: 'boolean', default: true });
    return ask('sure', inputRequired.elicit({ message: 'Are you sure?', requestedSchema }), name.content.name);
  });
  server.registerTool('visit', {}, async (ctx) => {
    const answer = inputResponse(ctx.mcpReq.inputResponses, 'visit');
    if (answer.kind === 'elicit') return text(answer.action);
    return ask('visit', inputRequired.elicitUrl({ message: 'Please sign in', url: 'https://example.com/sign-in' }));
  });
  server.registerTool('sample', { inputSchema: z.object({ message: z.string() }) }, async ({ message }, ctx) => {
    const answer = inputResponse(ctx.mcpReq.inputResponses, 'poem');
    if (answer.kind === 'sampling') return text(`${answer.result.model}: ${answer.result.content.text}`);
    const messages = [{ role: 'user', content: { type: 'text', text: message } }];
    return ask('poem', inputRequired.createMessage({ messages, maxTokens: 50 }));
  });
  server.registerTool('where', {}, async (ctx) => {
    const answer = inputResponse(ctx.mcpReq.inputResponses, 'roots');
    if (answer.kind === 'roots') return text(answer.roots.map((one) => one.uri).join(' '));
    return ask('roots', inputRequired.listRoots());
  });
}

// Shared by all server objects: over HTTP each modern request has its own.
let cancelled;
const wasCancelled = new Promise((resolve) => (cancelled = resolve));

function addWaiting(server) {
  // Sends a progress notification, so that the client knows that the call has begun, then waits until it is cancelled.
  server.registerTool('wait', {}, async (ctx) => {
    ctx.mcpReq.signal.addEventListener('abort', () => cancelled());
    const params = { progressToken: ctx.mcpReq._meta?.progressToken, progress: 1 };
    await ctx.mcpReq.notify({ method: 'notifications/progress', params });
    await wasCancelled;
    return text('cancelled');
  });
  server.registerTool('cancelled', {}, async () => {
    await wasCancelled;
    return text('yes');
  });
}

let grown = false;
let modern; // over HTTP: notifies modern clients of changes

function addChanging(server, era) {
  // The SDK manages the subscriptions of modern clients itself.
  const subscribed = new Set();
  if (era === 'legacy') {
    server.server.setRequestHandler('resources/subscribe', async ({ params }) => (subscribed.add(params.uri), {}));
    server.server.setRequestHandler('resources/unsubscribe', async ({ params }) => (subscribed.delete(params.uri), {}));
  }
  server.registerTool('touch', {}, async () => {
    if (era === 'modern' && modern) modern.notify.resourceUpdated('memo://one');
    else if (era !== 'legacy' || subscribed.has('memo://one')) await server.server.sendResourceUpdated({ uri: 'memo://one' });
    return text('touched');
  });
  const grow = () => server.registerTool('grown', {}, async () => text('grown'));
  if (grown) grow();
  server.registerTool('grow', {}, async () => {
    grow();
    if (era === 'modern' && modern) {
      grown = true;
      modern.notify.toolsChanged();
    }
    return text('grown');
  });
}

function addSimple(server) {
  server.registerTool('echo', { inputSchema: z.object({ message: z.string() }) }, async ({ message }) => text(message));
  server.registerTool(
    'add',
    { inputSchema: z.object({ a: z.number(), b: z.number() }), outputSchema: z.object({ sum: z.number() }) },
    async ({ a, b }) => ({ ...text(String(a + b)), structuredContent: { sum: a + b } }),
  );
  server.registerTool('fail', {}, async () => {
    throw new Error('it does not work');
  });
  server.registerTool('count', { inputSchema: z.object({ to: z.number(), cut: z.number().optional() }) }, async ({ to, cut }, ctx) => {
    for (let i = 1; i <= to; ++i) {
      const progressToken = ctx.mcpReq._meta?.progressToken;
      if (progressToken !== undefined) {
        const params = { progressToken, progress: i, total: to, message: `step ${i}` };
        await ctx.mcpReq.notify({ method: 'notifications/progress', params });
      }
      await ctx.mcpReq.log('info', `counted ${i}`, 'counter');
      if (i === cut) await wasCut;
    }
    await ctx.mcpReq.log('debug', 'done', 'counter');
    return text(`counted to ${to}`);
  });
  server.registerTool('media', {}, async () => ({ content: MEDIA }));
  server.registerResource('pixel', 'pixel://red', {}, async (uri) => ({
    contents: [{ uri: uri.href, mimeType: 'image/png', blob: PIXEL }],
  }));
  const memo = (uri, words) => ({ contents: [{ uri: uri.href, mimeType: 'text/plain', text: words }] });
  server.registerResource('one', 'memo://one', {}, async (uri) => memo(uri, 'the first memo'));
  server.registerResource(
    'memos',
    new ResourceTemplate('memos://{name}', { list: undefined, complete: { name: named } }),
    {},
    async (uri, { name }) => memo(uri, `memo ${name}`),
  );
  server.registerPrompt('greet', { argsSchema: z.object({ name: completable(z.string(), named) }) }, ({ name }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `Say hello to ${name}` } }],
  }));
}

function make({ era }) {
  const server = new McpServer(
    { name: 'v2', version: '1.0.0' },
    { capabilities: { logging: {}, resources: { subscribe: true, listChanged: true } }, instructions: 'Use it for tests.' },
  );
  addSimple(server);
  addAsking(server);
  addWaiting(server);
  addChanging(server, era);
  return server;
}

// Each legacy session has its own server and transport. A request without a session id may start a session.
const sessions = new Map();
async function transportFor(id) {
  if (id !== null) return sessions.get(id);
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: () => crypto.randomUUID(),
    onsessioninitialized: (made) => void sessions.set(made, transport),
    onsessionclosed: (closed) => void sessions.delete(closed),
    enableJsonResponse: process.argv[2] === 'json',
    eventStore: new EventStore(),
    retryInterval: 50,
  });
  await make({ era: 'legacy' }).connect(transport);
  return transport;
}

async function serveHttp(request) {
  if (new URL(request.url).pathname !== '/mcp') return new Response(null, { status: 404 });
  if (!(await isLegacyRequest(request))) return modern.fetch(request);
  const transport = await transportFor(request.headers.get('mcp-session-id'));
  return transport ? transport.handleRequest(request) : new Response(null, { status: 404 });
}

if (['http', 'json'].includes(process.argv[2])) {
  modern = createMcpHandler(make, { legacy: 'reject', responseMode: process.argv[2] === 'json' ? 'json' : 'auto' });
  listen(getRequestListener(serveHttp, { overrideGlobalObjects: false }), () => sessions.clear());
} else {
  serveStdio(make);
}
