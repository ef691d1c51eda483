// v1.mjs TRANSPORT REVISION FIXTURE_SERVER WEATHER ASK: the client of the official TypeScript SDK, 1.x, with Fairlead servers.
import { check } from './checks.mjs';
import { kind } from './sdk1.mjs';

const args = process.argv.slice(2);
await check(kind(args[1]), args);
