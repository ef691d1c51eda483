// The checks of a client of the SDK, 1.x or 2.x, with Fairlead servers. The client modules (sdk1.mjs, sdk2.mjs) pass
//   open(place, capabilities, answers, heard): returns a connected client. `place` is one of places.mjs, `answers` maps methods
//   to handlers of the server's requests, and heard(method, params) is called for each notification;
// and values that differ between the two SDKs.
import assert from 'node:assert/strict';
import { Heard, begin } from './heard.mjs';
import { answerTypes, places } from './places.mjs';

async function every(list, key) {
  const all = [];
  let cursor;
  do {
    const page = await list(cursor === undefined ? undefined : { cursor });
    all.push(...page[key]);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return all;
}

const text = (result) => result.content.map((one) => one.text).join('|');
const names = (list) => list.map((one) => one.name).sort();

const TOOLS = ['add', 'cancelled', 'confirm', 'count', 'echo', 'fail', 'grow', 'large', 'media', 'release', 'sample', 'steps', 'touch', 'visit', 'wait', 'where'];

export async function check(kind, [transport, revision, fixture, weather, ask]) {
  const modern = revision === '2026-07-28' || revision === 'auto';
  const since = (first) => modern || revision >= first;
  const capabilities = { sampling: {}, roots: {} };
  if (since('2025-06-18')) capabilities.elicitation = since('2025-11-25') ? { form: {}, url: {} } : {};
  const asked = [];
  let decline = false;
  const answers = {
    'sampling/createMessage': async (request) => {
      asked.push(request.params);
      return { model: 'parrot', role: 'assistant', content: { type: 'text', text: request.params.messages[0].content.text } };
    },
    'roots/list': async () => ({ roots: [{ uri: 'file:///one', name: 'one' }, { uri: 'file:///two' }] }),
  };
  if (capabilities.elicitation) {
    answers['elicitation/create'] = async (request) => {
      asked.push(request.params);
      if (decline) return { action: 'decline' };
      if (request.params.mode === 'url') return { action: 'accept' };
      const wanted = Object.keys(request.params.requestedSchema.properties)[0];
      return { action: 'accept', content: wanted === 'name' ? { name: 'Ada' } : { [wanted]: true } };
    };
  }

  async function session(command, body, [offered, handlers] = [capabilities, answers]) {
    const heard = new Heard();
    const place = await places[transport](command);
    const { client, negotiated } = await kind.open(place, offered, handlers, (method, params) => heard.add(method, params));
    assert.equal(negotiated(), modern ? '2026-07-28' : revision);
    place.opened?.(modern);
    await body(client, heard);
    begin('close');
    await place.leave?.();
    await client.close();
    assert.deepEqual(await place.ended(), { code: 0, signal: null }, 'the server ends by itself when its stdin does');
  }
  const call = (client, name, args = {}, options = undefined, meta = undefined) =>
    kind.callTool(client, { name, arguments: args, ...(meta && { _meta: meta }) }, options);
  const refused = (code) => (error) => {
    assert.equal(error.code, code, error.message);
    return true;
  };

  async function features(client, heard) {
    assert.equal(client.getServerVersion().name, 'fixture');
    assert.equal(client.getInstructions(), 'Use it for tests.');

    begin('lists, page by page');
    const tools = await every((params) => client.listTools(params), 'tools');
    assert.deepEqual(names(tools), TOOLS);
    assert.equal(tools.find((one) => one.name === 'add').outputSchema !== undefined, since('2025-06-18'));
    assert.deepEqual(names(await every((params) => client.listResources(params), 'resources')), ['one', 'pixel']);
    assert.deepEqual(names(await every((params) => client.listResourceTemplates(params), 'resourceTemplates')), ['memos']);
    assert.deepEqual(names(await every((params) => client.listPrompts(params), 'prompts')), ['greet']);

    begin('tools');
    assert.equal(text(await call(client, 'echo', { message: 'héllo\n\u{1f600}' })), 'héllo\n\u{1f600}');
    const sum = await call(client, 'add', { a: 2, b: 3.5 });
    assert.deepEqual(JSON.parse(text(sum)), { sum: 5.5 });
    assert.deepEqual(sum.structuredContent, since('2025-06-18') ? { sum: 5.5 } : undefined);
    const media = await call(client, 'media');
    const link = since('2025-06-18') ? 'resource_link' : 'text';
    assert.deepEqual(media.content.map((one) => one.type), ['image', since('2025-03-26') ? 'audio' : 'text', 'resource', link]);
    const failure = await call(client, 'fail');
    assert.deepEqual([failure.isError, text(failure)], [true, 'it does not work']);
    if (since('2025-11-25')) {
      assert.equal((await call(client, 'echo', { message: 1 })).isError, true);
    } else {
      await assert.rejects(call(client, 'echo', { message: 1 }), refused(-32602));
    }
    await assert.rejects(call(client, 'no such tool'), refused(-32602));

    begin('resources');
    assert.equal((await client.readResource({ uri: 'memo://one' })).contents[0].text, 'the first memo');
    assert.equal((await client.readResource({ uri: 'memos://two' })).contents[0].text, 'memo two');
    const pixel = (await client.readResource({ uri: 'pixel://red' })).contents[0];
    assert.deepEqual([pixel.mimeType, Buffer.from(pixel.blob, 'base64').subarray(1, 4).toString()], ['image/png', 'PNG']);
    await assert.rejects(client.readResource({ uri: 'nothing://here' }), refused(kind.notFound));

    begin('prompts and completion');
    const prompt = await client.getPrompt({ name: 'greet', arguments: { name: 'Ada' } });
    assert.equal(prompt.messages[0].content.text, 'Say hello to Ada');
    await assert.rejects(client.getPrompt({ name: 'greet', arguments: {} }), refused(-32602));
    const argument = { name: 'name', value: 'al' };
    for (const ref of [{ type: 'ref/prompt', name: 'greet' }, { type: 'ref/resource', uri: 'memos://{name}' }]) {
      assert.deepEqual((await client.complete({ ref, argument })).completion.values, ['alice', 'albert']);
    }

    begin('progress and logging');
    if (!modern) await client.setLoggingLevel('info');
    const seen = [];
    const level = modern ? { 'io.modelcontextprotocol/logLevel': 'info' } : undefined;
    const counting = new Promise((resolve) => {
      const onprogress = (one) => seen.push(one) === 3 && resolve(call(client, 'release').then(() => counted));
      const counted = call(client, 'count', { to: 3 }, { onprogress }, level);
    });
    assert.equal(text(await counting), 'counted to 3');
    const steps = [1, 2, 3].map((i) => ({ progress: i, total: 3, ...(since('2025-03-26') && { message: `step ${i}` }) }));
    assert.deepEqual(seen, steps);
    const logged = heard.of('notifications/message').map(({ level, logger, data }) => [level, logger, data]);
    assert.deepEqual(logged, [1, 2, 3].map((i) => ['info', 'counter', `counted ${i}`]));
    if (modern) {
      await call(client, 'count', { to: 1 });
      assert.equal(heard.of('notifications/message').length, 3, 'no log messages for those who do not ask');
    }

    begin('sampling and roots');
    assert.equal(text(await call(client, 'sample', { message: 'hello' })), 'parrot: hello');
    assert.equal(asked.pop().maxTokens, 50);
    assert.equal(text(await call(client, 'where')), 'file:///one file:///two ');

    begin('elicitation');
    if (since('2025-06-18')) {
      assert.equal(text(await call(client, 'confirm')), 'Ada is sure');
      assert.deepEqual(asked.splice(0).map((one) => one.message), ['Who are you?', 'Are you sure?']);
      decline = true;
      assert.equal(text(await call(client, 'confirm')), 'declined');
      decline = false;
      asked.splice(0);
    }
    if (since('2025-11-25')) {
      assert.equal(text(await call(client, 'visit')), 'visited');
      assert.equal(asked.pop().url, 'https://example.com/sign-in');
    }

    begin('cancellation');
    const stop = new AbortController();
    await assert.rejects(call(client, 'wait', {}, { signal: stop.signal, onprogress: () => stop.abort('enough') }));
    assert.equal(text(await call(client, 'cancelled')), '1');

    begin('changes');
    const listening = modern ? await client.listen({ resourceSubscriptions: ['memo://one'], toolsListChanged: true }) : undefined;
    if (modern) {
      assert.deepEqual(listening.honoredFilter, { resourceSubscriptions: ['memo://one'], toolsListChanged: true });
    } else {
      await client.subscribeResource({ uri: 'memo://one' });
    }
    await call(client, 'touch');
    assert.equal((await heard.until('notifications/resources/updated', 1))[0].uri, 'memo://one');
    await call(client, 'grow');
    await heard.until('notifications/tools/list_changed', 1);
    assert.ok(names(await every((params) => client.listTools(params), 'tools')).includes('grown'));
    if (modern) {
      await listening.close();
      assert.equal(await listening.closed, 'local');
    } else {
      await client.unsubscribeResource({ uri: 'memo://one' });
      await client.ping();
    }
    await call(client, 'touch');
    assert.equal(text(await call(client, 'echo', { message: 'last' })), 'last');
    assert.equal(heard.of('notifications/resources/updated').length, 1, 'nothing after the subscription');
  }

  await session(fixture, features);

  begin('a client that can be asked nothing');
  const bare = async (client) => {
    for (const [name, args] of [['sample', { message: 'hello' }], ['where', {}], ['confirm', {}], ['visit', {}]]) {
      if (modern) {
        await assert.rejects(call(client, name, args), refused(-32021));
      } else {
        assert.equal((await call(client, name, args)).isError, true);
      }
    }
    assert.equal(text(await call(client, 'echo', { message: 'still here' })), 'still here');
  };
  await session(fixture, bare, [{}, {}]);

  if (transport === 'http') {
    begin('both forms of answers');
    // Responses to tools that sent notifications first are event streams, the others are JSON.
    assert.deepEqual([...answerTypes].sort(), ['application/json', 'text/event-stream']);
  }
  if (transport !== 'stdio') return begin('done');

  begin('examples/weather');
  await session(weather, async (client) => {
    assert.deepEqual(names((await client.listTools()).tools), ['forecast']);
    const forecast = await call(client, 'forecast', { city: 'Bern', days: 2 });
    assert.equal(JSON.parse(text(forecast)).days.length, 2);
    assert.equal(forecast.structuredContent?.city, since('2025-06-18') ? 'Bern' : undefined);
    assert.match((await client.readResource({ uri: 'weather://Bern/now' })).contents[0].text, /^Bern: [0-9.]+$/);
    assert.match((await client.getPrompt({ name: 'packing_list', arguments: { city: 'Bern' } })).messages[0].content.text, /Bern/);
  });

  begin('examples/ask');
  await session(ask, async (client) => {
    assert.equal(text(await call(client, 'poem', { about: 'rain' })), 'A short poem about rain');
    if (since('2025-06-18')) assert.equal(text(await call(client, 'greet')), 'Hello, Ada.');
  });
  begin('done');
}
