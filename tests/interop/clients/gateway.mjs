// Clients of the official SDKs with the gateway, which has servers of both SDKs and servers from npm at the same time:
// gateway.mjs v1|v2 REVISION http|stdio FAIRLEAD.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { begin, Heard } from './heard.mjs';

const [, , sdk, revision, transport, fairlead] = process.argv;
const { kind } = await import(sdk === 'v1' ? './sdk1.mjs' : './sdk2.mjs');
const modern = revision >= '2026';
const here = dirname(dirname(fileURLToPath(import.meta.url)));
const scratch = mkdtempSync(join(tmpdir(), 'fairlead-gateway-'));
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));

const node = (script, ...args) => ({ command: process.execPath, args: [join(here, script), ...args] });
const npm = 'node_modules/@modelcontextprotocol';
const mcpServers = {
  v1: node('servers/v1.mjs'),
  v2: node('servers/v2.mjs'),
  everything: node(`${npm}/server-everything/dist/index.js`, 'stdio'),
  files: node(`${npm}/server-filesystem/dist/index.js`, scratch),
  broken: { command: join(scratch, 'no-such-program') },
};
const config = join(scratch, 'desktop.json');
writeFileSync(config, JSON.stringify({ mcpServers }));
writeFileSync(join(scratch, 'note.txt'), 'written down');

async function overHttp() {
  const child = spawn(fairlead, ['serve', '--config', config, '--listen', '127.0.0.1:0'], { stdio: ['ignore', 'ignore', 'pipe'] });
  const exit = once(child, 'exit');
  process.on('exit', () => child.kill('SIGKILL')); // also when a check has failed
  const url = await new Promise((resolve, reject) => {
    createInterface({ input: child.stderr }).on('line', (line) => {
      const told = /endpoint=(\S+)/.exec(line);
      if (told) resolve(told[1]);
    });
    exit.then(([code]) => reject(new Error(`the gateway ended with ${code}`)));
  });
  const end = async () => (child.kill('SIGTERM'), (await exit)[0]);
  return { transport: ({ Http }) => new Http(new URL(url)), end };
}

function onStdio() {
  let stdio;
  const make = ({ Stdio }) => (stdio = new Stdio({ command: fairlead, args: ['serve', '--config', config, '--stdio', '--log-level', 'error'] }));
  return { transport: make, opened: () => (stdio.exit = once(stdio._process, 'exit')), end: async () => (await stdio.exit)[0] };
}

const place = transport === 'http' ? await overHttp() : onStdio();
const answers = {
  'sampling/createMessage': async ({ params }) => ({
    role: 'assistant',
    model: 'none',
    content: { type: 'text', text: `heard: ${[params.messages[0].content].flat()[0].text}` },
  }),
  'roots/list': async () => ({ roots: [{ uri: 'file:///home' }] }),
};
const capabilities = { sampling: {}, roots: {} };
const { open, callTool } = kind(revision);
const heard = new Heard();
const { client } = await open(place, capabilities, answers, (method, params) => heard.add(method, params));
place.opened?.();
const call = async (name, args = {}, options) => (await callTool(client, { name, arguments: args }, options)).content[0].text;

begin('lists');
// The tools of all servers are listed under distinct names. The server that cannot be started does not affect the others.
const { tools } = await client.listTools();
const names = tools.map((tool) => tool.name);
for (const name of ['v1__echo', 'v2__echo', 'everything__echo', 'files__read_text_file']) assert(names.includes(name), `${name} in ${names}`);
assert(!names.some((name) => name.startsWith('broken')));
assert(names.every((name) => /^[A-Za-z0-9_-]{1,64}$/.test(name)));

begin('calls');
// Concurrent calls, one to each server.
const texts = await Promise.all([
  call('v1__echo', { message: 'one' }),
  call('v2__echo', { message: 'two' }),
  call('everything__echo', { message: 'three' }),
  call('files__read_text_file', { path: join(scratch, 'note.txt') }),
]);
assert.deepEqual(texts, ['one', 'two', 'Echo: three', 'written down']);

begin('progress and log messages');
// Progress of a legacy and of a modern server reaches its call.
for (const server of ['v1', 'v2']) {
  const steps = [];
  await call(`${server}__count`, { to: 3 }, { onprogress: ({ progress }) => steps.push(progress) });
  // On stdio the SDKs drop notifications that they read together with the response, because they handle the response first.
  const whole = transport === 'stdio' ? [1, 2, 3].slice(0, steps.length) : [1, 2, 3];
  assert.deepEqual(steps, whole, server);
}

if (!modern) {
  // Log messages have the level that the client has set, for servers of both eras.
  for (const [level, said] of [['info', ['counted 1', 'counted 2']], ['debug', ['counted 1', 'counted 2', 'done']]]) {
    await client.setLoggingLevel(level);
    const before = heard.of('notifications/message').length;
    await call('v1__count', { to: 2 });
    const logged = await heard.until('notifications/message', before + said.length);
    assert.deepEqual(logged.slice(before).map(({ data }) => data), said);
  }
}

begin('questions');
// Requests of servers of both eras reach the client, except those of a legacy server if the client is modern.
if (!modern) assert.equal(await call('v1__sample', { message: 'hi' }), 'none: heard: hi');
assert.equal(await call('v2__sample', { message: 'hi' }), 'none: heard: hi');
if (modern) assert.match(await call('v1__sample', { message: 'hi' }), /no requests from servers/);

begin('cancellation');
for (const server of ['v1', 'v2']) {
  const stop = new AbortController();
  await assert.rejects(call(`${server}__wait`, {}, { signal: stop.signal, onprogress: () => stop.abort('enough') }));
  assert.match(await call(`${server}__cancelled`), /yes/);
}

begin('changes');
// If the client supports requests of servers, the server on 1.x has sent one above; since then it serves this session only.
const wanted = { resourceSubscriptions: ['memo://one'], toolsListChanged: true };
const listening = modern ? await client.listen(wanted) : await client.subscribeResource({ uri: 'memo://one' });
if (modern) assert.deepEqual(listening.honoredFilter, wanted);
await call('v1__touch');
assert.equal((await heard.until('notifications/resources/updated', 1))[0].uri, 'memo://one');
let changes = heard.of('notifications/tools/list_changed').length;
for (const server of ['v1', 'v2']) {
  await call(`${server}__grow`);
  await heard.until('notifications/tools/list_changed', ++changes);
  const { tools } = await client.listTools();
  assert(tools.some(({ name }) => name === `${server}__grown`), `${server}__grown`);
}
if (!modern) await assert.rejects(client.subscribeResource({ uri: 'nothing://here' }));

begin('resources and prompts');
const { resources } = await client.listResources();
assert(resources.length > 0);
await client.readResource({ uri: resources[0].uri });
const { prompts } = await client.listPrompts();
const simple = prompts.find((prompt) => !(prompt.arguments ?? []).some((argument) => argument.required));
assert((await client.getPrompt({ name: simple.name, arguments: {} })).messages.length > 0);

begin('the end');
await assert.rejects(callTool(client, { name: 'v1__nothing', arguments: {} }), /-32602|Unknown tool/);
await client.close();
assert.equal(await place.end(), 0);
