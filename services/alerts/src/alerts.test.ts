/** Evaluating alerts, and posting their webhooks. */

import { createSocket } from 'node:dgram';
import { getServers, setServers } from 'node:dns';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { LookupFunction } from 'node:net';
import { afterEach, expect, it, jest } from '@jest/globals';
import type { Alert, AlertSettings, AlertStore } from '@meterline/service/alerts';
import { ClickHouseError, NO_ROLLUPS, type Warehouse } from '@meterline/warehouse';
import { HttpsProxyAgent } from 'https-proxy-agent';
import { type Logger, pino } from 'pino';
import { Registry } from 'prom-client';
import { ALERT_SETTINGS } from '../../../test/harness/alerts.js';
import { listening } from '../../../test/harness/listening.js';
import { serve } from '../../../test/harness/serving.js';
import { ATTEMPTS, post } from './deliverer.js';
import { readEnv } from './env.js';
import { Evaluator } from './evaluator.js';
import { createAlertMetrics } from './metrics.js';

const NOW = new Date('2025-10-15T12:00:00Z');
afterEach(() => {
  jest.restoreAllMocks();
});

/** With these filters, one after the other. */
function alertsOf(account: string, filters: readonly AlertSettings['filters'][]): Alert[] {
  const at = NOW.toISOString();
  return filters.map((each, n) => ({
    ...{ ...ALERT_SETTINGS, id: `${account}-${n}`, account, filters: { ...each } as Alert['filters'] },
    ...{ thresholds: [{ percent: 50, since: at }], secret: 'whsec_', createdAt: at, updatedAt: at },
  }));
}

/** @param response to a statement, by its parameters as text */
function evaluatorOf(
  all: readonly Alert[],
  response: (parameters: string) => unknown,
  log: Logger = pino({ enabled: false }),
  { firedOf = async () => [], fire = async () => 'fired' }: Partial<Pick<AlertStore, 'firedOf' | 'fire'>> = {},
): Evaluator {
  const read = async ({ query_params }: { query_params: unknown }) => response(JSON.stringify(query_params)) ?? [];
  return new Evaluator({
    alerts: {
      all: async function* () {
        yield [...all];
      },
      ...{ firedOf, fire },
    },
    warehouse: { read } as unknown as Warehouse,
    readRollupState: async () => ({ ...NO_ROLLUPS, droppedBefore: 0 }),
    metrics: createAlertMetrics(new Registry(), { countPending: async () => 0 }),
    log,
  });
}

it('an account whose alerts cost much gets a share of each turn, in the end for all of them, and holds up no other', async () => {
  let nowMs = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => nowMs);
  const greedy = alertsOf(
    'greedy',
    Array.from({ length: 20 }, (_, n) => ({ resourceName: [`box-${n}.`] })),
  );
  const requested: string[] = [];
  const evaluator = evaluatorOf([...greedy, ...alertsOf('victim', [{}])], (parameters) => {
    requested.push(parameters);
    if (parameters.includes('greedy')) nowMs += 2_000;
  });
  await evaluator.turn(NOW);
  expect(requested.filter((one) => one.includes('victim'))).toHaveLength(1);
  expect(requested.filter((one) => one.includes('greedy'))).toHaveLength(2);
  for (let turn = 0; turn < 200; turn += 1) await evaluator.turn(NOW);
  for (let n = 0; n < 20; n += 1) expect(requested.some((one) => one.includes(`box-${n}.`))).toBe(true);
});

it('an alert whose marks cannot be read keeps no other from being judged, and is told', async () => {
  const judged: string[] = [];
  const log = pino({ enabled: false });
  const error = jest.spyOn(log, 'error');
  const firedOf = async ({ account }: Alert): Promise<[]> => {
    if (account === 'spoilt') throw new SyntaxError('a mark is no JSON');
    return [];
  };
  const all = [...alertsOf('spoilt', [{}]), ...alertsOf('other', [{}])];
  await evaluatorOf(all, (parameters) => judged.push(parameters), log, { firedOf }).turn(NOW);
  expect(judged.filter((one) => one.includes('other'))).not.toEqual([]);
  expect(error).toHaveBeenCalledWith(expect.objectContaining({ event: 'evaluation_queue_error' }), expect.anything());
});

it('an account with more usage than a statement may read keeps no threshold of another from being judged, and is no outage', async () => {
  const accounts = Array.from({ length: 10 }, (_, n) => `account-${n}`);
  const judged = new Set<string>();
  const all = ['huge', ...accounts].flatMap((account) => alertsOf(account, [{}]));
  let statements = 0;
  const lines: unknown[] = [];
  const log = pino({}, { write: (line: string) => lines.push(JSON.parse(line)) });
  const read = (parameters: string) => {
    statements += 1;
    if (parameters.includes('huge'))
      throw new ClickHouseError({ message: 'limit', code: '159', type: 'TIMEOUT_EXCEEDED' });
    for (const account of accounts) if (parameters.includes(account)) judged.add(account);
  };
  const evaluator = evaluatorOf(all, read, log);
  await evaluator.turn(NOW);
  expect([...judged].sort()).toEqual(accounts);
  // From then on it is asked about alone: a statement for all others, and one for it.
  statements = 0;
  await evaluator.turn(NOW);
  expect(statements).toBe(2);
  expect(lines).toEqual([expect.objectContaining({ event: 'alert_too_large', account: 'huge', alert: 'huge-0' })]);
});

const rejection = (message: string) => new ClickHouseError({ message, code: '1000', type: 'POCO_EXCEPTION' });

it('accounts with long ids are judged in statements whose parameters ClickHouse accepts', async () => {
  const accounts = Array.from({ length: 600 }, (_, n) => `${n}-`.padEnd(256, '客'));
  const judged = new Set<string>();
  let tooLong = 0;
  const evaluator = evaluatorOf(
    accounts.flatMap((account) => alertsOf(account, [{}])),
    (parameters) => {
      if (Buffer.byteLength(parameters) > 128 * 1024) tooLong += 1;
      for (const account of accounts) if (parameters.includes(account)) judged.add(account);
    },
  );
  await evaluator.turn(NOW);
  expect([judged.size, tooLong]).toEqual([600, 0]);
  expect(evaluator.lastTurn).toMatchObject({ notJudged: 0 });
});

it('an alert whose statement ClickHouse rejects is logged, is counted as not judged, and keeps no other from being judged', async () => {
  const accounts = Array.from({ length: 10 }, (_, n) => `account-${n}`);
  const judged = new Set<string>();
  const lines: unknown[] = [];
  const log = pino({}, { write: (line: string) => lines.push(JSON.parse(line)) });
  const all = ['odd', ...accounts].flatMap((account) => alertsOf(account, [{}]));
  const evaluator = evaluatorOf(
    all,
    (parameters) => {
      if (parameters.includes('odd')) throw rejection('a statement of its own kind');
      for (const account of accounts) if (parameters.includes(account)) judged.add(account);
    },
    log,
  );
  await evaluator.turn(NOW);
  expect([...judged].sort()).toEqual(accounts);
  expect(evaluator.lastTurn).toMatchObject({ notJudged: 1 });
  expect(lines).toEqual([expect.objectContaining({ event: 'alert_rejected', account: 'odd', alert: 'odd-0' })]);
});

it('a ClickHouse that rejects every statement is not asked about each of many alerts', async () => {
  let statements = 0;
  const all = Array.from({ length: 500 }, (_, n) => alertsOf(`account-${n}`, [{}])).flat();
  const evaluator = evaluatorOf(all, () => {
    statements += 1;
    throw rejection('no');
  });
  await evaluator.turn(NOW);
  expect(statements).toBeLessThan(150);
  expect(evaluator.lastTurn).toMatchObject({ notJudged: 500 });
});

it('an alert that was deleted after ClickHouse had rejected its statement is forgotten', async () => {
  const all = [...alertsOf('odd', [{}]), ...alertsOf('other', [{}])];
  let isRejected = true;
  let requested: string[] = [];
  const evaluator = evaluatorOf(all, (parameters) => {
    requested.push(parameters);
    if (isRejected && parameters.includes('odd')) throw rejection('no');
  });
  await evaluator.turn(NOW);
  const [odd] = all.splice(0, 1);
  await evaluator.turn(NOW);
  isRejected = false;
  requested = [];
  if (odd) all.push(odd);
  await evaluator.turn(NOW);
  expect(requested.filter((one) => one.includes('odd'))).toEqual(requested.filter((one) => one.includes('other')));
});

it.each(['changed', 'full'] as const)(
  'a crossed threshold that Redis does not mark (%s) is logged',
  async (outcome) => {
    const lines: unknown[] = [];
    const log = pino({}, { write: (line: string) => lines.push(JSON.parse(line)) });
    const all = alertsOf('acme', [{}]).map((alert) => ({ ...alert, amount: '0' }));
    await evaluatorOf(all, () => undefined, log, { fire: async () => outcome }).turn(NOW);
    expect(lines).toEqual([expect.objectContaining({ event: 'threshold_not_fired', alert: 'acme-0', threshold: 50 })]);
  },
);

it('an account whose statement takes long to reach the limit keeps no neighbour in it from being judged', async () => {
  let nowMs = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => nowMs);
  const requested: string[] = [];
  const evaluator = evaluatorOf([...alertsOf('huge', [{}]), ...alertsOf('victim', [{}])], (parameters) => {
    if (parameters.includes('huge')) {
      nowMs += 15_000;
      throw new ClickHouseError({ message: 'limit', code: '159', type: 'TIMEOUT_EXCEEDED' });
    }
    requested.push(parameters);
  });
  await evaluator.turn(NOW);
  expect(requested).toEqual([expect.stringContaining('victim')]);
});

it('the metrics of alerts come without what waits in Redis while Redis does not answer', async () => {
  const registry = new Registry();
  createAlertMetrics(registry, { countPending: () => new Promise(() => undefined) });
  expect(await registry.metrics()).not.toMatch(/^meterline_webhooks_pending [0-9]/m);
});

const allowedHosts = new Set(['127.0.0.1']);

it('a status of 2xx is a delivery, and every other none', async () => {
  for (const [status, isDelivered] of [
    [200, true],
    [204, true],
    [400, false],
    [500, false],
  ] as const) {
    const { url } = await serve((response) => response.writeHead(status).end('ok'));
    expect(await post(url, '{}', {}, { allowedHosts })).toEqual({ isDelivered, text: String(status) });
  }
});

it.each([
  [429, '120', 120_000],
  [503, 'Fri, 01 Jan 1999 00:00:00 GMT', 0],
  [503, 'soon', undefined],
  [500, '120', undefined],
])('a status of %d with Retry-After: %s asks for a wait of %p ms', async (status, text, retryAfterMs) => {
  const { url } = await serve((response) => response.writeHead(status, { 'retry-after': text }).end());
  const outcome = await post(url, '{}', {}, { allowedHosts });
  expect(outcome).toEqual({ isDelivered: false, text: String(status), retryAfterMs });
});

it('a redirect is not followed', async () => {
  const elsewhere = await serve((response) => response.end());
  const { url } = await serve((response) => response.writeHead(307, { location: elsewhere.url }).end());
  expect(await post(url, '{}', {}, { allowedHosts })).toEqual({ isDelivered: false, text: '307' });
  expect(elsewhere.requests).toEqual([]);
});

it('a response without end is dropped, and its status counts', async () => {
  let sent = 0;
  const { url } = await serve((response) => {
    const chunk = Buffer.alloc(64 * 1024);
    const more = () => {
      while (!response.destroyed && response.write(chunk)) sent += chunk.length;
    };
    response.on('drain', more);
    more();
  });
  expect(await post(url, '{}', {}, { allowedHosts })).toEqual({ isDelivered: true, text: '200' });
  // What fits into the buffers of the connection.
  expect(sent).toBeLessThan(64 * 1024 * 1024);
});

it('a receiver that does not answer, or is away, has a reason, which names no address', async () => {
  const { url } = await serve(() => undefined);
  const hanging = await post(url, '{}', {}, { allowedHosts, timeoutMs: 50 });
  expect(hanging).toEqual({ isDelivered: false, text: 'no response within 0.05 s' });
  const away = await post('http://127.0.0.1:1/', '{}', {}, { allowedHosts });
  expect(away).toEqual({ isDelivered: false, text: 'ECONNREFUSED' });
});

/** A name that stands for these, one list after the other at each time that it is asked for. */
function resolvingTo(...responses: readonly (readonly string[])[]): LookupFunction {
  const left = [...responses];
  return (_name, { all }, callback) => {
    const addresses = (left.length > 1 ? left.shift() : left[0]) ?? [];
    const found = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
    if (all) callback(null, found);
    else callback(null, found[0]?.address ?? '', found[0]?.family);
  };
}

it.each([
  '127.0.0.1',
  '10.0.0.1',
  '169.254.169.254',
  '0.0.0.0',
  '::1',
  '::ffff:127.0.0.1',
  'fd00::1',
  '64:ff9b::7f00:1',
  '64:ff9b::a00:1',
  '::127.0.0.1',
])('a name that resolves to %s is not connected to', async (address) => {
  const { url, requests } = await serve((response) => response.end());
  for (const addresses of [[address], ['93.184.215.14', address]]) {
    const options = { allowedHosts, lookup: resolvingTo(addresses) };
    const outcome = await post(`https://hooks.example:${new URL(url).port}/`, '{}', {}, options);
    expect(outcome).toEqual({ isDelivered: false, text: 'the host has an address that is not public' });
  }
  expect(requests).toEqual([]);
});

it('a name that resolves to a public IPv4 address behind NAT64 is connected to', async () => {
  const options = { allowedHosts, lookup: resolvingTo(['64:ff9b::5db8:d70e']), timeoutMs: 50 };
  const { text } = await post('https://hooks.example/', '{}', {}, options);
  expect(text).not.toBe('the host has an address that is not public');
});

it('a webhook to a public host goes through the proxy, which resolves its name; one to an allowed host does not', async () => {
  const tunnels: (string | undefined)[] = [];
  const proxy = createServer().on('connect', ({ url }, socket) => {
    tunnels.push(url);
    socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n');
  });
  const proxyAgent = new HttpsProxyAgent(await listening(proxy));
  const { url } = await serve((response) => response.end());
  const options = { allowedHosts, proxyAgent };
  expect(await post('https://hooks.example/', '{}', {}, options)).toEqual({ isDelivered: false, text: '403' });
  expect(await post(url, '{}', {}, options)).toEqual({ isDelivered: true, text: '200' });
  expect(tunnels).toEqual(['hooks.example:443']);
  proxy.close();
});

it('a name that stands for another address at each attempt is not connected to at the second', async () => {
  const lookup = resolvingTo(['192.0.2.1'], ['127.0.0.1']);
  const attempt = () => post('https://hooks.example/', '{}', {}, { allowedHosts, lookup, timeoutMs: 20 });
  await attempt();
  expect((await attempt()).text).toBe('the host has an address that is not public');
});

it('a name server that does not answer, or for one kind of address alone, holds up no webhook', async () => {
  const requested: string[] = [];
  const nameServer = createSocket('udp4', (query, { port, address }) => {
    const name = query.toString('latin1', 12);
    requested.push(name);
    const typeAndClass = query.subarray(query.indexOf(0, 12) + 1).subarray(0, 4);
    if (name.includes('slow') || (name.includes('ipv4') && typeAndClass[1] !== 1)) return;
    // The question again, with one answer: the name at byte 12, its type and class, for a minute, of 4 or 16 bytes.
    const question = query.subarray(12, query.indexOf(0, 12) + 5);
    const loopback = typeAndClass[1] === 1 ? [0, 4, 127, 0, 0, 1] : [0, 16, ...Array(15).fill(0), 1];
    const flagsAndCounts = Buffer.from([0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
    const answer = [Buffer.from([0xc0, 12]), typeAndClass, Buffer.from([0, 0, 0, 60, ...loopback])];
    nameServer.send(Buffer.concat([query.subarray(0, 2), flagsAndCounts, question, ...answer]), port, address);
  });
  nameServer.bind(0, '127.0.0.1');
  await once(nameServer, 'listening');
  const before = getServers();
  setServers([`127.0.0.1:${nameServer.address().port}`]);
  try {
    const none = new Set<string>();
    const slow = Array.from({ length: 8 }, (_, n) =>
      post(`https://slow${n}.example/`, '{}', {}, { allowedHosts: none, timeoutMs: 2_000 }),
    );
    for (const name of ['quick', 'ipv4only']) {
      const other = await post(`https://${name}.example/`, '{}', {}, { allowedHosts: none, timeoutMs: 1_900 });
      expect(other.text).toBe('the host has an address that is not public');
    }
    expect(requested.filter((name) => name.includes('slow')).length).toBeGreaterThanOrEqual(16);
    const late = { isDelivered: false, text: 'the name server did not answer within 800 ms' };
    expect(await Promise.all(slow)).toEqual(slow.map(() => late));
  } finally {
    setServers(before);
    nameServer.close();
  }
});

it('a webhook is not posted where its url may not lead', async () => {
  const outcome = await post('https://[::1]/', '{}', {}, { allowedHosts: new Set() });
  expect(outcome).toEqual({ isDelivered: false, text: expect.stringContaining('private network') });
});

it('the attempts to deliver a webhook are spread over 24 hours', () => {
  const { retryMs } = readEnv({}).METERLINE_CONSTANTS;
  const waits = Array.from({ length: ATTEMPTS - 1 }, (_, attempt) => retryMs * 2 ** attempt);
  const hours = waits.reduce((sum, wait) => sum + wait, 0) / 3_600_000;
  expect(hours).toBeCloseTo(24, 1);
});
