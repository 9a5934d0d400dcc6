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
const EARLY = { reason: 'timestamp_in_future', message: 'it is in the future' };
/** The response to one event. */
const TOO_EARLY = receipt([{} as Received['events'][number]], () => true, EARLY);

describe('what is sent', () => {
  it('what is sent is an array of events of any accounts, with the key', async () => {
    const emitter = await open({ url: `${fixture.collector.url}/v0/` });
    const ids = ['acme', '..', 'a/b ü'].map((accountId) => emitter.record({ ...USAGE, accountId }));
    expect(await emitter.flush()).toBe(true);
    const sent = fixture.collector.received.map((request) => [request.path, request.key, idsOf([request])]);
    expect(sent).toEqual([['/v0/events', 'Bearer mlk_secret', ids]]);
    expect(emitter.counters).toMatchObject({ recorded: 3, sent: 3, retried: 0, rejected: 0, unsent: 0 });
  });

  it('what is sent of 500 accounts is one request', async () => {
    const emitter = await open();
    for (let n = 0; n < 500; n += 1) emitter.record({ ...USAGE, accountId: `tenant-${n}` });
    expect(await emitter.flush()).toBe(true);
    expect(fixture.collector.received.map(({ events }) => events.length)).toEqual([500]);
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

  it('what is sent has the key of that time, and waits while there is none', async () => {
    const keys: (() => string)[] = [
      () => 'first',
      () => {
        throw new Error('the vault is away');
      },
      () => 'a secret\n',
      () => 'second',
    ];
    const emitter = await open({ apiKey: async () => keys.shift()?.() ?? 'third' });
    for (let n = 0; n < 2; n += 1) {
      emitter.record(USAGE);
      expect(await emitter.flush({ timeoutMs: 60_000 })).toBe(true);
    }
    expect(fixture.collector.received.map(({ key }) => key)).toEqual(['Bearer first', 'Bearer second']);
    expect(fixture.problems).toMatchObject([
      { code: 'unreachable', message: 'usage events cannot be sent, and wait: the vault is away' },
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
});

const FOREIGN = { reason: 'account_not_allowed', message: 'accountId must be "acme"' };

describe('an event of an account that the key may not send for', () => {
  const denying = () => {
    fixture.collector.respond = ({ events }) => receipt(events, ({ accountId }) => accountId === 'acme', FOREIGN);
  };
  const allowing = () => {
    fixture.collector.respond = ({ events }) => receipt(events);
  };

  it('an event of an account that the key may not send for waits until it may, and those of others do not', async () => {
    denying();
    const emitter = await open();
    for (let n = 0; n < 20; n += 1) emitter.record({ ...USAGE, accountId: n % 2 === 0 ? 'acme' : 'other' });
    await until(() => emitter.counters.sent === 10);
    expect(fixture.problems).toMatchObject([
      { code: 'held', message: 'some usage events cannot be sent, and wait: 403, accountId must be "acme"' },
    ]);
    expect(emitter.counters).toMatchObject({ rejected: 0, dropped: 0, unsent: 10 });
    allowing();
    expect(await emitter.flush({ timeoutMs: 30_000 })).toBe(true);
    expect(emitter.counters).toMatchObject({ sent: 20, rejected: 0, unsent: 0 });
  });

  it('events of a key that may send none of them stay in the spool', async () => {
    denying();
    const directory = folder();
    const emitter = await open({ spool: { directory } });
    const ids = Array.from({ length: 1_000 }, (_, n) => emitter.record({ ...USAGE, accountId: 'acme', usage: n }));
    expect(await emitter.close({ timeoutMs: 500 })).toBe(false);
    expect(emitter.counters).toMatchObject({ sent: 0, rejected: 0, unsent: 1_000 });
    allowing();
    const next = await open({ spool: { directory } });
    expect(await next.close()).toBe(true);
    expect(new Set(fixture.collector.ids)).toEqual(new Set(ids));
  });

  it('an event of an account that the key may not send for is rejected where too many wait, and holds up no other account', async () => {
    denying();
    // There is room for two events: those of the other account must leave it.
    const emitter = await open({ memoryBytes: 600, batchEvents: 1 });
    for (let n = 0; n < 20; n += 1) {
      emitter.record({ ...USAGE, accountId: n % 2 === 0 ? 'other' : 'acme' });
      expect(await emitter.flush()).toBe(true);
    }
    expect(fixture.problems.filter(({ code }) => code !== 'rejected')).toEqual([]);
    expect(emitter.counters).toMatchObject({ recorded: 20, sent: 10, rejected: 10, dropped: 0, retried: 0, unsent: 0 });
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

  it('a response of 429 holds everything for Retry-After, and a short one is not reported', async () => {
    const { received } = fixture.collector;
    const limited = { status: 429, headers: { 'retry-after': '1' }, body: { message: 'Too many requests' } };
    fixture.collector.respond = ({ events }) => (received.length === 1 ? limited : receipt(events));
    const emitter = await open({ batchEvents: 1 });
    emitter.record(USAGE);
    await until(() => received.length === 1);
    for (let n = 0; n < 8; n += 1) emitter.record({ ...USAGE, accountId: `tenant-${n}` });
    expect(await emitter.flush({ timeoutMs: 60_000 })).toBe(true);
    const [first, ...others] = received.map(({ atMs }) => atMs);
    // A request of the others may have been on its way.
    expect(others.filter((atMs) => atMs - (first ?? 0) < 990).length).toBeLessThan(4);
    expect(fixture.problems).toEqual([]);
    expect(emitter.counters).toMatchObject({ sent: 9, unsent: 0 });
  });

  it('a response of 403 holds everything, for the next start too, and is told once', async () => {
    fixture.collector.respond = () => ({
      status: 403,
      body: { error: 'forbidden', message: 'Access denied', details: [{ message: 'Why.' }] },
    });
    const emitter = await open({ batchEvents: 1, spool: { directory: folder(), fsyncMs: 1 } });
    const kept = Array.from({ length: 20 }, (_, n) => emitter.record({ ...USAGE, accountId: `tenant-${n}` }));
    await until(() => fixture.problems.length > 0);
    expect(fixture.collector.received.length).toBeLessThan(5);
    expect(await emitter.close({ timeoutMs: 0 })).toBe(false);
    expect(fixture.problems).toMatchObject([
      { code: 'held', message: 'usage events cannot be sent, and wait: 403, Access denied Why.' },
    ]);
    expect(emitter.counters).toMatchObject({ rejected: 0, dropped: 0, unsent: 20 });

    fixture.collector.respond = ({ events }) => receipt(events);
    fixture.collector.received.length = 0;
    const next = await open({ spool: { directory: folder() } });
    expect(next.counters).toMatchObject({ recorded: 0, spooled: 0 });
    expect(await next.close()).toBe(true);
    expect(fixture.collector.ids).toEqual(expect.arrayContaining(kept));
    expect(next.counters).toMatchObject({ recorded: 0, unsent: 0 });
  });

  it.each<[string, (events: Received['events']) => TestResponse]>([
    ['of 400 without results', () => ({ status: 400, body: { message: 'Bad request' } })],
    ['of 413', () => ({ status: 413, body: { message: 'Request body too large' } })],
    ['of 500', () => ({ status: 500, body: { message: 'A defect' } })],
    ['that says too early', (events) => receipt(events, () => true, EARLY)],
  ])(
    'a response %s keeps the events of the request, told once, and those that come after are sent',
    async (_, refuse) => {
      fixture.collector.respond = ({ events }) =>
        events.some(({ usage }) => usage === 13) ? refuse(events) : receipt(events);
      const emitter = await open({ batchEvents: 1 });
      const timestamp = new Date(Date.now() + 300_000).toISOString();
      for (let n = 0; n < 20; n += 1) emitter.record({ ...USAGE, usage: 13, timestamp });
      for (let n = 0; n < 40; n += 1) emitter.record(USAGE);
      await until(() => emitter.counters.sent === 40);
      expect(fixture.problems).toMatchObject([
        { code: 'held', message: expect.stringMatching(/^some usage events cannot be sent, and wait: \d+, \w/) },
      ]);
      expect(emitter.counters).toMatchObject({ rejected: 0, unsent: 20 });
    },
  );

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

  it('a response of 500 to one event of many accounts is found to be about that event, and the others are sent', async () => {
    fixture.collector.respond = ({ events }) =>
      events.some(({ usage }) => usage === 13)
        ? { status: 500, headers: { 'retry-after': '0' }, body: { message: 'A defect' } }
        : receipt(events);
    const emitter = await open();
    for (let n = 0; n < 100; n += 1) emitter.record({ ...USAGE, accountId: `tenant-${n}`, usage: n });
    await until(() => emitter.counters.sent === 99);
    expect(emitter.counters).toMatchObject({ rejected: 0, dropped: 0, unsent: 1 });
  });

  it.each<[string, TestResponse, string]>([
    ['that is a page', { status: 202, body: '<html>Log in</html>' }, "202, is url the collector's? It says: <html>"],
    ['for other events', { status: 202, body: { accepted: 2, rejected: 0, results: [] } }, '202, '],
    ['whose counts exceed the events', { status: 202, body: { accepted: 1, rejected: 1, results: [] } }, '202, '],
    [
      'that counts a rejection without a result',
      { status: 400, body: { accepted: 0, rejected: 1, results: [] } },
      '400, ',
    ],
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
