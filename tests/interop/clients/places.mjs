// Where our servers are reached, by the name of the transport. Each starts the command and gives
//   transport(classes): the SDK's client transport to it; `classes` are the SDK's own,
//   opened(modern), leave(): what is to be looked at, and done, at the beginning and the end of a session,
//   ended(): how the server ended, once its stdin is closed.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

// The forms in which requests were answered over HTTP.
export const answerTypes = new Set();

async function watchedFetch(url, init) {
  const response = await fetch(url, init);
  if (init.method === 'POST' && response.status === 200) answerTypes.add(response.headers.get('content-type'));
  return response;
}

function stdio(command) {
  let transport;
  let exit;
  return {
    transport: ({ Stdio }) => (transport = new Stdio({ command, stderr: 'inherit' })),
    opened: () => (exit = once(transport._process, 'exit')),
    ended: async () => Object.fromEntries((await exit).map((value, i) => [['code', 'signal'][i], value])),
  };
}

// Starts the server on a port of its own. It ends with its stdin, which is to say with us at the latest.
export async function listening(command) {
  const child = spawn(command, ['--http'], { stdio: ['pipe', 'ignore', 'pipe'] });
  const exit = once(child, 'exit');
  const url = await new Promise((resolve, reject) => {
    createInterface({ input: child.stderr }).on('line', (line) => {
      const told = /^listening on (.*)$/.exec(line);
      if (told) resolve(told[1]);
      else console.error(line);
    });
    exit.then(([code]) => reject(new Error(`the server ended with ${code}`)));
  });
  const ended = async () => {
    child.stdin.end();
    const [code, signal] = await exit;
    return { code, signal };
  };
  return { url, ended };
}

async function http(command) {
  const { url, ended } = await listening(command);
  let transport;
  return {
    transport: ({ Http }) => (transport = new Http(new URL('/mcp', url), { fetch: watchedFetch })),
    opened: (modern) => assert.equal(typeof transport.sessionId, modern ? 'undefined' : 'string'),
    leave: () => transport.terminateSession(),
    ended,
  };
}

// The pair of 2024-11-05.
async function pair(command) {
  const { url, ended } = await listening(command);
  return { transport: ({ Sse }) => new Sse(new URL('/sse', url)), ended };
}

// The SDK's transport for it is a few lines around Node's own WebSocket.
async function websocket(command) {
  const { url, ended } = await listening(command);
  let transport;
  return {
    transport: ({ WebSocket }) => (transport = new WebSocket(new URL('/mcp', url.replace('http', 'ws')))),
    opened: () => assert.equal(transport._socket.protocol, 'mcp'),
    ended,
  };
}

export const places = { stdio, http, sse: pair, websocket };
