// Serves HTTP on a free port for the servers in this directory. Writes its URL to stdout, in a notification. The process exits at
// the end of its stdin. The line `cut` on stdin closes all connections, `forget` ends all sessions; the process confirms each
// command by a notification when it is done.
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';

const sockets = new Set();
let told;
// Resolves when the connections have been closed.
export const wasCut = new Promise((resolve) => (told = resolve));

function say(said) {
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/said', params: { said } }) + '\n');
}

export function listen(handle, forget) {
  const server = createServer((req, res) => Promise.resolve(handle(req, res)).catch((error) => (console.error(error), res.destroy())));
  server.on('connection', (socket) => (sockets.add(socket), socket.on('close', () => sockets.delete(socket))));
  server.listen(0, '127.0.0.1', () => say(`http://127.0.0.1:${server.address().port}`));
  const cut = () => {
    for (const socket of sockets) socket.resetAndDestroy();
    told();
  };
  createInterface({ input: process.stdin })
    .on('line', (line) => ({ cut, forget })[line]?.())
    .on('line', say)
    .on('close', () => process.exit(0));
}

// Stores events in order. The id of an event contains the id of its stream.
export class EventStore {
  #events = [];

  async storeEvent(stream, message) {
    this.#events.push({ stream, message });
    return `${stream}/${this.#events.length - 1}`;
  }
  async getStreamIdForEventId(id) {
    return id.slice(0, id.lastIndexOf('/'));
  }
  async replayEventsAfter(id, { send }) {
    const stream = await this.getStreamIdForEventId(id);
    for (let i = Number(id.slice(stream.length + 1)) + 1; i < this.#events.length; ++i) {
      const { stream: of, message } = this.#events[i];
      // The first event of a stream has no message.
      if (of === stream && message.jsonrpc) await send(`${stream}/${i}`, message);
    }
    return stream;
  }
}
