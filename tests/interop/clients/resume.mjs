// resume.mjs KIND REVISION FIXTURE_SERVER: the clients of the official TypeScript SDK (KIND: v1, v2) when their connections are
// closed. Messages that were sent meanwhile are replayed once, by Last-Event-ID.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { Heard, begin } from './heard.mjs';
import { listening } from './places.mjs';

const [name, revision, fixture] = process.argv.slice(2);
const { kind } = await import(name === 'v1' ? './sdk1.mjs' : './sdk2.mjs');
const { open, callTool } = kind(revision);
const text = (result) => result.content.map((one) => one.text).join('|');

// A proxy between client and server. It closes all connections on command, and delays new ones while it is shut.
class Proxy {
  #pairs = new Set();
  #waiting = [];
  #shut = false;
  #server;

  async start(target) {
    const { hostname, port } = new URL(target);
    this.#server = createServer((client) => {
      const join = () => this.#join(client, connect(Number(port), hostname));
      if (this.#shut) this.#waiting.push(join);
      else join();
    });
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    return `http://127.0.0.1:${this.#server.address().port}`;
  }
  #join(client, server) {
    const pair = [client, server];
    this.#pairs.add(pair);
    for (const [from, to] of [pair, [server, client]]) {
      from.on('error', () => {});
      from.on('close', () => (this.#pairs.delete(pair), to.destroy()));
      from.pipe(to);
    }
  }
  // Resolves when the connections to the server are closed, too.
  async cut() {
    this.#shut = true;
    const closed = [...this.#pairs].flat().map((one) => once(one, 'close'));
    for (const [client, server] of this.#pairs) {
      client.resetAndDestroy();
      server.resetAndDestroy();
    }
    await Promise.all(closed);
  }
  open() {
    this.#shut = false;
    for (const join of this.#waiting.splice(0)) join();
  }
  stop() {
    this.#server.close();
  }
}

const server = await listening(fixture);
const proxy = new Proxy();
const url = await proxy.start(server.url);

// Counts the GET requests of the client, and lets the test wait for one.
const gets = [];
const resumed = () => gets.map((headers) => headers.get('last-event-id')).filter((id) => id);
async function watchedFetch(at, init) {
  if (init.method === 'GET') gets.push(new Headers(init.headers));
  return fetch(at, init);
}

// Another client, whose connection is not closed. Its calls cause the notifications that the first client receives later.
const plain = { transport: ({ Http }) => new Http(new URL('/mcp', server.url)) };
const other = await open(plain, {}, {}, () => {});
const tell = async (tool) => text(await callTool(other.client, { name: tool, arguments: {} }));

begin('connect');
const heard = new Heard();
let transport;
const reconnectionOptions = { initialReconnectionDelay: 20, maxReconnectionDelay: 100, reconnectionDelayGrowFactor: 1.5, maxRetries: 20 };
const cuttable = { transport: ({ Http }) => (transport = new Http(new URL('/mcp', url), { fetch: watchedFetch, reconnectionOptions })) };
const { client } = await open(cuttable, {}, {}, (method, params) => heard.add(method, params));

begin('a stream that only listens is cut');
await client.subscribeResource({ uri: 'memo://one' });
await tell('touch');
await heard.until('notifications/resources/updated', 1);
await proxy.cut();
await tell('touch');
proxy.open();
await heard.until('notifications/resources/updated', 2);
assert.ok(resumed().length >= 1);

begin('a call is cut in the midst of its answer');
await client.setLoggingLevel('info');
const before = resumed().length;
const seen = [];
let cutting;
const counted = await callTool(client, { name: 'count', arguments: { to: 3 } }, {
  onprogress: (one) => {
    if (seen.push(one.progress) !== 3) return;
    cutting = proxy.cut().then(() => tell('release')).then(() => proxy.open());
  },
});
await cutting;
assert.equal(text(counted), 'counted to 3');
assert.deepEqual(seen, [1, 2, 3]);
assert.ok(resumed().length > before);
const logged = heard.of('notifications/message').map((one) => one.data);
assert.deepEqual(logged, ['counted 1', 'counted 2', 'counted 3']);

begin('the session goes on');
assert.equal(text(await callTool(client, { name: 'echo', arguments: { message: 'still here' } })), 'still here');
await transport.terminateSession();
await client.close();
await other.client.close();
proxy.stop();
assert.deepEqual(await server.ended(), { code: 0, signal: null });
assert.equal(heard.of('notifications/resources/updated').length, 2);
begin('done');
