/** An emitter and an HTTP server that answers as the collector does, or as what stands in front of it. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, jest } from '@jest/globals';
import { USAGE, until, useEmitters } from '../../../test/emitter/emitter-test.js';
import { type Answer, type Received, receipt, TOO_EARLY } from '../../../test/emitter/test-collector.js';

const { fixture, open } = useEmitters({ apiKey: 'mlk_secret', batchMs: 10 });

const idsOf = (requests: readonly Received[]) => requests.flatMap(({ events }) => events.map(({ eventId }) => eventId));

describe('what is sent', () => {
  it('is an array of events for each account, with the key', async () => {
    const emitter = await open({ url: `${fixture.collector.url}/v0/` });
    const acme = [emitter.record(USAGE), emitter.record(USAGE)];
    const other = emitter.record({ ...USAGE, accountId: 'a/b ü' });
    expect(await emitter.flush()).toBe(true);
    const sent = fixture.collector.received.map(({ path, key, events }) => [
      path,
      key,
      events.map(({ eventId }) => eventId),
    ]);
    expect(sent.sort()).toEqual([
      ['/v0/accounts/a%2Fb%20%C3%BC/events', 'Bearer mlk_secret', [other]],
      ['/v0/accounts/acme/events', 'Bearer mlk_secret', acme],
    ]);
    expect(emitter.counters).toMatchObject({ recorded: 3, sent: 3, retried: 0, rejected: 0, unsent: 0 });
  });

  it('is compressed when it is large, and has the same events', async () => {
    const emitter = await open();
    const ids = Array.from({ length: 500 }, () => emitter.record(USAGE));
    expect(await emitter.flush()).toBe(true);
    expect(fixture.collector.received).toMatchObject([{ encoding: 'gzip' }]);
    expect(idsOf(fixture.collector.received)).toEqual(ids);
    emitter.record(USAGE);
    await emitter.flush();
    expect(fixture.collector.received[1]?.encoding).toBeUndefined();
  });

  it('has the key of the account at that time', async () => {
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
  it.each([true, false])('is counted, told and not sent again (others accepted: %s)', async (hasOthers) => {
    fixture.collector.answer = ({ events }) => receipt(events, ({ usage }) => usage === 13);
    const emitter = await open();
    const bad = emitter.record({ ...USAGE, usage: 13 });
    if (hasOthers) emitter.record(USAGE);
    expect(await emitter.flush()).toBe(true);
    expect(fixture.problems).toMatchObject([
      { code: 'rejected', reason: 'no_price', event: { eventId: bad, usage: 13 } },
    ]);
    emitter.record(USAGE);
    await emitter.flush();
    expect(idsOf(fixture.collector.received).filter((id) => id === bad)).toHaveLength(1);
    expect(emitter.counters).toMatchObject({ rejected: 1, sent: hasOthers ? 2 : 1, unsent: 0 });
  });

  it('is one that is days ahead, of a clock that was set meanwhile', async () => {
    fixture.collector.answer = () => TOO_EARLY;
    const emitter = await open();
    const clock = jest.spyOn(Date, 'now').mockReturnValue(Date.now() + 2 * 86_400_000);
    emitter.record(USAGE);
    clock.mockRestore();
    expect(await emitter.flush()).toBe(true);
    expect(fixture.problems).toMatchObject([{ code: 'rejected', reason: 'timestamp_in_future' }]);
  });

  it('is one whose account no address can name', async () => {
    const emitter = await open();
    emitter.record({ ...USAGE, accountId: '..' });
    expect(await emitter.flush()).toBe(true);
    expect(fixture.problems).toMatchObject([{ code: 'rejected', reason: 'invalid_account_id' }]);
    expect(fixture.collector.received).toEqual([]);
  });
});

describe('an answer that is no receipt', () => {
  it('503 with Retry-After: everything waits as long, and is reported once', async () => {
    fixture.collector.answer = ({ events }) => {
      const isFirst = fixture.collector.received.length === 1;
      return isFirst
        ? { status: 503, headers: { 'retry-after': '1' }, body: { message: 'Redis is away' } }
        : receipt(events);
    };
    const emitter = await open();
    const id = emitter.record(USAGE);
    expect(await emitter.flush({ timeoutMs: 60_000 })).toBe(true);
    expect(idsOf(fixture.collector.received)).toEqual([id, id]);
    expect((fixture.collector.received[1]?.atMs ?? 0) - (fixture.collector.received[0]?.atMs ?? 0)).toBeGreaterThan(
      990,
    );
    expect(fixture.problems).toMatchObject([
      { code: 'unreachable', message: 'usage events cannot be sent, and wait: 503, Redis is away' },
    ]);
    expect(emitter.counters).toMatchObject({ sent: 1, retried: 1, unsent: 0 });
  });

  it('429: the events of the account wait as long, others do not', async () => {
    const isAcme = ({ path }: Received) => path?.includes('acme') === true;
    const sinceFirst = ({ atMs }: Received) => atMs - (fixture.collector.received.find(isAcme)?.atMs ?? 0);
    fixture.collector.answer = (request) => {
      if (!isAcme(request) || sinceFirst(request) > 900) return receipt(request.events);
      return { status: 429, headers: { 'retry-after': '1' }, body: { message: 'Too many requests' } };
    };
    const emitter = await open({ batchEvents: 1 });
    for (let n = 0; n < 8; n += 1) emitter.record(USAGE);
    const others = Array.from({ length: 8 }, () => emitter.record({ ...USAGE, accountId: 'other' }));
    expect(await emitter.flush({ timeoutMs: 60_000 })).toBe(true);
    // Those that were on their way with the first one.
    expect(
      fixture.collector.received.filter((request) => isAcme(request) && sinceFirst(request) < 990).length,
    ).toBeLessThan(5);
    const lastOfAcme = fixture.collector.received.filter(isAcme).at(-1)?.atMs ?? 0;
    expect(idsOf(fixture.collector.received.filter(({ atMs }) => atMs < lastOfAcme))).toEqual(
      expect.arrayContaining(others),
    );
    expect(fixture.problems).toEqual([]);
  });

  it('403: the account’s events are kept and the reason is told; others are sent', async () => {
    const forbidden = { status: 403, body: { code: 403, error: 'forbidden', message: 'Access denied' } };
    fixture.collector.answer = ({ path, events }) => (path?.includes('acme') ? forbidden : receipt(events));
    const directory = await mkdtemp(join(tmpdir(), 'meterline-spool-'));
    const emitter = await open({ batchEvents: 1, spool: { directory } });
    const kept = Array.from({ length: 20 }, () => emitter.record(USAGE));
    for (let n = 0; n < 20; n += 1) emitter.record({ ...USAGE, accountId: 'other' });
    await until(() => emitter.counters.sent === 20);
    expect(fixture.collector.received.filter(({ path }) => path?.includes('acme')).length).toBeLessThan(5);
    expect(fixture.problems).toMatchObject([
      { code: 'held', message: 'usage events of the account acme cannot be sent, and wait: 403, Access denied' },
    ]);
    expect(emitter.counters).toMatchObject({ rejected: 0, dropped: 0, unsent: 20 });
    expect(await emitter.close({ timeoutMs: 0 })).toBe(false);

    fixture.collector.answer = ({ events }) => receipt(events);
    fixture.collector.received.length = 0;
    const next = await open({ spool: { directory } });
    expect(await next.close()).toBe(true);
    expect(idsOf(fixture.collector.received)).toEqual(expect.arrayContaining(kept));
    await rm(directory, { recursive: true });
  });

  it.each([
    [
      'a page instead of a receipt',
      { status: 202, body: '<html>Log in</html>' },
      "202, is url the collector's? It says: <html>",
    ],
    ['a receipt for other events', { status: 202, body: { accepted: 2, rejected: 0, results: [] } }, '202, '],
    [
      'a refusal of no event',
      { status: 400, body: { accepted: 0, results: [{ index: 1, status: 'rejected' }] } },
      '400, ',
    ],
    ['a check alone', { status: 200, body: { accepted: 1, rejected: 0, results: [] } }, '200, '],
    ['a redirect', { status: 301, headers: { location: '/elsewhere' }, body: '' }, '301, '],
    ['an unknown key', { status: 401, body: { message: 'The API key is unknown.' } }, '401, The API key is unknown.'],
    ['another service', { status: 404, body: 'Not Found' }, '404, '],
    ['an event that is early by the collector’s clock', TOO_EARLY, '400, it is in the future'],
    ['a limit of a proxy', { status: 413, body: '<h1>Request Entity Too Large' }, '413, '],
  ])('%s: the events are kept', async (_, wrong: Answer, words) => {
    fixture.collector.answer = () => wrong;
    const emitter = await open();
    emitter.record(USAGE);
    await until(() => fixture.problems.length > 0);
    expect(fixture.problems).toMatchObject([{ code: 'held', message: expect.stringContaining(words) }]);
    expect(fixture.collector.received).toHaveLength(1);
    expect(emitter.counters).toMatchObject({ sent: 0, rejected: 0, dropped: 0, unsent: 1 });
  });
});

describe('while the collector is away', () => {
  it('close breaks off what gets no answer', async () => {
    fixture.collector.server.removeAllListeners('request');
    const requested = once(fixture.collector.server, 'request');
    const emitter = await open();
    emitter.record(USAGE);
    await requested;
    expect(await emitter.close({ timeoutMs: 0 })).toBe(false);
    expect(emitter.counters).toMatchObject({ sent: 0, unsent: 1 });
  });
});
