// v2.mjs TRANSPORT REVISION FIXTURE_SERVER WEATHER ASK: the client of the official TypeScript SDK, 2.x, with Fairlead servers.
// REVISION can be `auto`: the SDK negotiates the revision.
import { check } from './checks.mjs';
import { kind } from './sdk2.mjs';

const args = process.argv.slice(2);
await check(kind(args[1]), args);
