// Listens on a port of its own for the servers beside this file. Where, is told on stdout, in a notification; the process ends
// with its stdin. The line `cut` there cuts all connections, `forget` ends all sessions; each is repeated once it is done.
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';

const sockets = new Set();
let told;
// Resolves when the connections have been cut.
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

// Events in the order in which they were stored; the streams' ids are part of the events'.
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
      // What opened the stream holds no message.
      if (of === stream && message.jsonrpc) await send(`${stream}/${i}`, message);
    }
    return stream;
  }
}
