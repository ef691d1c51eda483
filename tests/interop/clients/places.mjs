// The ways to connect to Fairlead servers, by the name of the transport. Each starts the command and returns
//   transport(classes): creates the client transport; `classes` are the transport classes of the SDK,
//   opened(modern), leave(): a check at the start of a session, and an action at its end,
//   ended(): closes stdin of the server, and resolves to its exit code and signal.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

// The content types of all responses over HTTP.
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

// Starts the server on a free port. It exits at the end of its stdin, so at the latest when this process exits.
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

// HTTP+SSE, the transport of 2024-11-05.
async function pair(command) {
  const { url, ended } = await listening(command);
  return { transport: ({ Sse }) => new Sse(new URL('/sse', url)), ended };
}

// The WebSocket transport of the SDK is a thin wrapper around the WebSocket of Node.
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
