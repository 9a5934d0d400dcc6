/** What an emitter sends to a server that answers as the collector does, or as what stands in front of it, and makes of the response. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, jest } from '@jest/globals';
import { type Received, receipt, type TestResponse, USAGE, until, useEmitters } from '../../../test/emitter/fixture.js';
import { testFolder } from '../../../test/harness/test-folder.js';

const { fixture, open } = useEmitters();
const folder = testFolder();

const DAY_MS = 86_400_000;
const idsOf = (requests: readonly Received[]) => requests.flatMap(({ events }) => events.map(({ eventId }) => eventId));
const isAcme = ({ events }: Received) => events.some(({ accountId }) => accountId === 'acme');
/** The response to one event. */
const TOO_EARLY = receipt([{} as Received['events'][number]], () => true, {
  reason: 'timestamp_in_future',
  message: 'it is in the future',
});

describe('what is sent', () => {
  it('what is sent is an array of events for each account, with the key', async () => {
    const emitter = await open({ url: `${fixture.collector.url}/v0/` });
    const acme = [emitter.record(USAGE), emitter.record(USAGE)];
    const other = emitter.record({ ...USAGE, accountId: 'a/b ü' });
    expect(await emitter.flush()).toBe(true);
    const sent = fixture.collector.received.map((request) => [request.path, request.key, idsOf([request])]);
    expect(sent.sort()).toEqual([
      ['/v0/events', 'Bearer mlk_secret', acme],
      ['/v0/events', 'Bearer mlk_secret', [other]],
    ]);
    expect(emitter.counters).toMatchObject({ recorded: 3, sent: 3, retried: 0, rejected: 0, unsent: 0 });
  });

  it('what is sent goes through the fetch of the options', async () => {
    const urls: unknown[] = [];
    const emitter = await open({
      fetch: (input, init) => {
        urls.push(input);
        return fetch(input, init);
      },
    });
    emitter.record(USAGE);
    expect(await emitter.flush()).toBe(true);
    expect(urls).toEqual([`${fixture.collector.url}/v0/events`]);
  });

  it('what is sent is compressed when it is large, and has the same events', async () => {
    const emitter = await open();
    const ids = Array.from({ length: 500 }, () => emitter.record(USAGE));
    expect(await emitter.flush()).toBe(true);
    expect(fixture.collector.received).toMatchObject([{ encoding: 'gzip' }]);
    expect(fixture.collector.ids).toEqual(ids);
    emitter.record(USAGE);
    await emitter.flush();
    expect(fixture.collector.received[1]?.encoding).toBeUndefined();
  });

  it('what is sent has the key of the account at that time', async () => {
    let times = 0;
    const emitter = await open({
      apiKey: (account) => {
        times += 1;
        if (account === 'unknown') throw new Error('no such account');
        return `${account}-${times}`;
      },
    });
    for (let n = 1; n < 3; n += 1) {
      emitter.record(USAGE);
      expect(await emitter.flush()).toBe(true);
    }
    expect(fixture.collector.received.map(({ key }) => key)).toEqual(['Bearer acme-1', 'Bearer acme-2']);
    emitter.record({ ...USAGE, accountId: 'unknown' });
    await until(() => fixture.problems.length > 0);
    expect(fixture.problems).toMatchObject([
      { code: 'held', message: expect.stringMatching(/account unknown .* apiKey has failed: no such account$/) },
    ]);
  });
});

describe('a rejected event', () => {
  it.each([true, false])(
    'a rejected event is counted, told and not sent again (others accepted: %s)',
    async (hasOthers) => {
      fixture.collector.respond = ({ events }) => receipt(events, ({ usage }) => usage === 13);
      const emitter = await open();
      const bad = emitter.record({ ...USAGE, usage: 13 });
      if (hasOthers) emitter.record(USAGE);
      expect(await emitter.flush()).toBe(true);
      expect(fixture.problems).toMatchObject([
        { code: 'rejected', reason: 'no_price', event: { eventId: bad, usage: 13 } },
      ]);
      emitter.record(USAGE);
      await emitter.flush();
      expect(fixture.collector.ids.filter((id) => id === bad)).toHaveLength(1);
      expect(emitter.counters).toMatchObject({ rejected: 1, sent: hasOthers ? 2 : 1, unsent: 0 });
    },
  );

  it('a rejected event is also one that is days ahead, of a clock that was set meanwhile', async () => {
    fixture.collector.respond = () => TOO_EARLY;
    const emitter = await open();
    const clock = jest.spyOn(Date, 'now').mockReturnValue(Date.now() + 2 * DAY_MS);
    emitter.record(USAGE);
    clock.mockRestore();
    expect(await emitter.flush()).toBe(true);
    expect(fixture.problems).toMatchObject([{ code: 'rejected', reason: 'timestamp_in_future' }]);
  });

  it('a rejected event is also one whose account no address can name', async () => {
    const emitter = await open();
    emitter.record({ ...USAGE, accountId: '..' });
    expect(await emitter.flush()).toBe(true);
    expect(fixture.problems).toMatchObject([{ code: 'rejected', reason: 'invalid_account_id' }]);
    expect(fixture.collector.received).toEqual([]);
  });
});

describe('a response that is no receipt', () => {
  it('a response of 503 with Retry-After holds everything as long, and is reported once until something is taken', async () => {
    const away = { status: 503, headers: { 'retry-after': '1' }, body: { message: 'Redis is away' } };
    const { received } = fixture.collector;
    fixture.collector.respond = ({ events }) => (received.length % 2 === 1 ? away : receipt(events));
    const emitter = await open();
    const id = emitter.record(USAGE);
    expect(await emitter.flush({ timeoutMs: 60_000 })).toBe(true);
    expect(idsOf(received)).toEqual([id, id]);
    expect((received[1]?.atMs ?? 0) - (received[0]?.atMs ?? 0)).toBeGreaterThan(990);
    expect(fixture.problems).toMatchObject([
      { code: 'unreachable', message: 'usage events cannot be sent, and wait: 503, Redis is away' },
    ]);
    emitter.record(USAGE);
    expect(await emitter.flush({ timeoutMs: 60_000 })).toBe(true);
    expect(fixture.problems).toHaveLength(2);
    expect(emitter.counters).toMatchObject({ sent: 2, retried: 2, unsent: 0 });
  });

  it('a longer Retry-After lengthens the pause that another response has begun', async () => {
    const { received } = fixture.collector;
    const away = { status: 503, body: { message: 'Redis is away' } };
    fixture.collector.respond = async (request) => {
      if (received.length > 2) return receipt(request.events);
      while (received.length < 2) await sleep(1);
      if (isAcme(request)) return away;
      // The pause of the first response has begun by then, and lasts 50 ms.
      await sleep(20);
      return { ...away, headers: { 'retry-after': '1' } };
    };
    const emitter = await open({ batchEvents: 1 });
    emitter.record(USAGE);
    emitter.record({ ...USAGE, accountId: 'other' });
    expect(await emitter.flush({ timeoutMs: 60_000 })).toBe(true);
    const [first, again] = received.filter((request) => !isAcme(request)).map(({ atMs }) => atMs);
    expect((again ?? 0) - (first ?? 0)).toBeGreaterThan(990);
  });

  it('a response of 429 holds the events of the account as long, and no others', async () => {
    const { received } = fixture.collector;
    const sinceFirst = ({ atMs }: Received) => atMs - (received.find(isAcme)?.atMs ?? 0);
    fixture.collector.respond = (request) => {
      if (!isAcme(request) || sinceFirst(request) > 900) return receipt(request.events);
      return { status: 429, headers: { 'retry-after': '1' }, body: { message: 'Too many requests' } };
    };
    const emitter = await open({ batchEvents: 1 });
    for (let n = 0; n < 8; n += 1) emitter.record(USAGE);
    const others = Array.from({ length: 8 }, () => emitter.record({ ...USAGE, accountId: 'other' }));
    expect(await emitter.flush({ timeoutMs: 60_000 })).toBe(true);
    // Only requests that were on their way with the first one came before the pause had ended.
    expect(received.filter((request) => isAcme(request) && sinceFirst(request) < 990).length).toBeLessThan(5);
    const lastOfAcme = received.filter(isAcme).at(-1)?.atMs ?? 0;
    expect(idsOf(received.filter(({ atMs }) => atMs < lastOfAcme))).toEqual(expect.arrayContaining(others));
    expect(fixture.problems).toEqual([]);
  });

  it('a response of 403 keeps the events of the account, for the next start too, and is told; others are sent', async () => {
    const forbidden = {
      status: 403,
      body: { error: 'forbidden', message: 'Access denied', details: [{ message: 'Why.' }] },
    };
    fixture.collector.respond = (request) => (isAcme(request) ? forbidden : receipt(request.events));
    const emitter = await open({ batchEvents: 1, spool: { directory: folder(), fsyncMs: 1 } });
    const kept = Array.from({ length: 20 }, () => emitter.record(USAGE));
    for (let n = 0; n < 20; n += 1) emitter.record({ ...USAGE, accountId: 'other' });
    await until(() => emitter.counters.sent === 20);
    expect(fixture.collector.received.filter(isAcme).length).toBeLessThan(5);
    expect(fixture.problems).toMatchObject([
      { code: 'held', message: 'usage events of the account acme cannot be sent, and wait: 403, Access denied Why.' },
    ]);
    expect(emitter.counters).toMatchObject({ rejected: 0, dropped: 0, unsent: 20 });
    expect(await emitter.close({ timeoutMs: 0 })).toBe(false);

    fixture.collector.respond = ({ events }) => receipt(events);
    fixture.collector.received.length = 0;
    const next = await open({ spool: { directory: folder() } });
    expect(next.counters).toMatchObject({ recorded: 0, spooled: 0 });
    expect(await next.close()).toBe(true);
    expect(fixture.collector.ids).toEqual(expect.arrayContaining(kept));
    expect(next.counters).toMatchObject({ recorded: 0, unsent: 0 });
  });

  it('a response of 413 keeps the events of the request, told once, and those that come after are sent', async () => {
    fixture.collector.respond = ({ events }) =>
      events.some(({ usage }) => usage === 13)
        ? { status: 413, body: { message: 'Request body too large' } }
        : receipt(events);
    const emitter = await open({ batchEvents: 1 });
    for (let n = 0; n < 20; n += 1) emitter.record({ ...USAGE, usage: 13 });
    for (let n = 0; n < 40; n += 1) emitter.record(USAGE);
    await until(() => emitter.counters.sent === 40);
    expect(fixture.problems).toMatchObject([{ code: 'held', message: expect.stringMatching(/413, Request body/) }]);
    expect(emitter.counters).toMatchObject({ rejected: 0, unsent: 20 });
  });

  it('a response whose text never comes is given up after ten seconds, and its events are sent again', async () => {
    const emitter = await open();
    const response = Object.assign(new Response(), { text: () => new Promise<string>(() => undefined) });
    const fetching = jest.spyOn(globalThis, 'fetch').mockResolvedValueOnce(response);
    jest.useFakeTimers({ now: Date.now(), doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate', 'performance'] });
    emitter.record(USAGE);
    await jest.advanceTimersByTimeAsync(1_000);
    expect(fetching).toHaveBeenCalledTimes(1);
    await jest.advanceTimersByTimeAsync(10_000);
    jest.useRealTimers();
    await until(() => emitter.counters.sent === 1);
    expect(emitter.counters).toMatchObject({ retried: 1, unsent: 0 });
    expect(fixture.problems).toMatchObject([{ message: expect.stringContaining('no response within 10 s') }]);
    fetching.mockRestore();
  });

  it.each<[string, TestResponse, string]>([
    ['that is a page', { status: 202, body: '<html>Log in</html>' }, "202, is url the collector's? It says: <html>"],
    ['for other events', { status: 202, body: { accepted: 2, rejected: 0, results: [] } }, '202, '],
    [
      'that rejects no event',
      { status: 400, body: { accepted: 0, results: [{ index: 1, status: 'rejected' }] } },
      '400, ',
    ],
    ['to a check alone', { status: 200, body: { accepted: 1, rejected: 0, results: [] } }, '200, '],
    ['that redirects', { status: 301, headers: { location: '/elsewhere' }, body: '' }, '301, '],
    ['to a key', { status: 401, body: { message: 'The API key is unknown.' } }, '401, The API key is unknown.'],
    ['of another service', { status: 404, body: 'Not Found' }, '404, '],
    ['to an event that is early by the collector’s clock', TOO_EARLY, '400, it is in the future'],
    ['of a proxy with a limit', { status: 413, body: '<h1>Request Entity Too Large' }, '413, '],
  ])('a response %s keeps the events, and is told', async (_, wrong, words) => {
    fixture.collector.respond = () => wrong;
    const emitter = await open();
    emitter.record(USAGE);
    await until(() => fixture.problems.length > 0);
    expect(fixture.problems).toMatchObject([{ code: 'held', message: expect.stringContaining(words) }]);
    expect(fixture.collector.received).toHaveLength(1);
    expect(emitter.counters).toMatchObject({ sent: 0, rejected: 0, dropped: 0, unsent: 1 });
  });
});
