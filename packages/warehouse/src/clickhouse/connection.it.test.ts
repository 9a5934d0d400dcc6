/** How a statement is sent, and how it can fail. What becomes of one that nobody waits for: cancelling.it.test.ts. */
import { createServer, type RequestListener } from 'node:http';
import { TupleParam } from '@clickhouse/client';
import { expect, it } from '@jest/globals';
import { pricedEvent } from '../../../../test/harness/events.js';
import { failureOf } from '../../../../test/harness/failure.js';
import { listening } from '../../../../test/harness/listening.js';
import { execute, select } from '../../../../test/harness/stack.js';
import { testDatabase } from '../../../../test/harness/test-database.js';
import { clickHouseUrlProblem } from '../addresses.js';
import { insertUsageEvents } from '../events/usage-events.js';
import { createWarehouse, insertRows, type Warehouse, type WarehouseOptions } from './connection.js';
import { clickHouseFailureKind, isContentError } from './errors.js';
import { inParts, listedBytes } from './list-size.js';

const database = testDatabase();

const HALF_A_MINUTE = 'SELECT sleepEachRow(3) FROM numbers(10) SETTINGS max_block_size = 1';
const NOWHERE = 'http://127.0.0.1:1';

/** Does `work` with a connection of its own. */
async function withWarehouse<T>(changes: Partial<WarehouseOptions>, work: (own: Warehouse) => Promise<T>): Promise<T> {
  const own = createWarehouse({ ...database.options, ...changes });
  return work(own).finally(() => own.close());
}

/** Does `work` with a connection to a server that answers so. */
async function withServer<T>(
  result: RequestListener,
  work: (own: Warehouse) => Promise<T>,
  options: (url: string) => Partial<WarehouseOptions> = (url) => ({ url }),
): Promise<T> {
  const server = createServer(result);
  const url = await listening(server);
  return withWarehouse(options(url), work).finally(() => server.close());
}

/** Reads the request, and answers with the text, as if one row had been written. */
const responding =
  (text: string): RequestListener =>
  (request, response) =>
    request.resume().on('end', () => {
      response.setHeader('X-ClickHouse-Summary', JSON.stringify({ written_rows: '1' }));
      response.end(text);
    });

it('a statement on replicas asks for the quorum', async () => {
  const requested: string[] = [];
  const result: RequestListener = (request, response) => {
    requested.push(request.url ?? '');
    responding('')(request, response);
  };
  const cluster = { name: 'replicas', insertQuorum: 2 };
  await withServer(
    result,
    (own) => insertUsageEvents(own, [pricedEvent()]),
    (url) => ({ url, cluster }),
  );
  expect(requested).toEqual([expect.stringContaining('insert_quorum=2')]);
});

const TEXTS = ['plain', "it's", 'back\\slash', 'tab\tline\nreturn\r', '\\n is no line', '+ & = % ?', '名前 😀', ''];

it.each([
  ['few', 1],
  ['more than an address may hold', 300],
])('a statement has texts, numbers, lists and tuples as parameters: %s', async (_many, times) => {
  const texts = Array.from({ length: times }, () => TEXTS).flat();
  const pairs = texts.map((text, index) => new TupleParam([text, index]));
  const named = Object.fromEntries(TEXTS.map((text, index) => [`text_${index}`, text]));
  const query = `
SELECT [${Object.keys(named).map((name) => `{${name}: String}`)}] AS named, {texts: Array(String)} AS texts,
  {pairs: Array(Tuple(String, UInt32))} AS pairs, {big: UInt64} AS big, {n: Int64} + 1 AS n`;
  const parameters = { ...named, texts, pairs, big: 2n ** 64n - 1n, n: -1_759_276_800_000 };
  expect(await select(database.warehouse, query, parameters)).toEqual([
    {
      ...{ named: TEXTS, texts, pairs: texts.map((text, index) => [text, index]) },
      ...{ big: '18446744073709551615', n: '-1759276799999' },
    },
  ]);
});

const NAMES = Array.from({ length: 5_000 }, (_, index) => `name ${index}'s`);

it('a statement that writes has as many parameters', async () => {
  await execute(database.warehouse, 'CREATE TABLE named (name String) ENGINE = MergeTree ORDER BY name');
  await execute(database.warehouse, 'INSERT INTO named SELECT arrayJoin({names: Array(String)})', { names: NAMES });
  const query = 'SELECT toUInt32(uniqExact(name)) AS names FROM named';
  expect(await select(database.warehouse, query)).toEqual([{ names: NAMES.length }]);
});

it.each(["'", '\\', '客'])(
  'ClickHouse accepts lists of accounts as long as they may be, of ids of %s',
  async (character) => {
    const account = character.repeat(256);
    const all = Array.from({ length: 600 }, () => account);
    for (const accounts of inParts(all, listedBytes)) {
      const query =
        'SELECT length({accounts: Array(String)}) + length({hours: Array(Tuple(String, UInt32))}) AS listed';
      const hours = accounts.map((each) => new TupleParam([each, 4_294_967_295]));
      const listed = 2 * accounts.length;
      expect(await select(database.warehouse, query, { accounts, hours })).toEqual([{ listed: String(listed) }]);
    }
  },
);

it('a statement has an address that proxies take, however long its parameters are', async () => {
  const lengths: number[] = [];
  await withServer(
    (request, response) => {
      lengths.push(request.url?.length ?? 0);
      responding('[]')(request, response);
    },
    (own) => select(own, 'SELECT {names: Array(String)} AS names', { names: NAMES }),
  );
  expect(lengths).toEqual([expect.any(Number)]);
  expect(lengths[0]).toBeLessThan(8_192);
});

it('a statement waits for inserts, skips no duplicate, and takes any number of partitions', async () => {
  const names = ['async_insert', 'insert_deduplicate', 'max_partitions_per_insert_block'];
  const query = `SELECT [${names.map((name) => `toUInt32(getSetting('${name}'))`)}] AS settings`;
  expect(await select(database.warehouse, query)).toEqual([{ settings: [0, 0, 0] }]);
});

const HALF_A_RESPONSE: RequestListener = (_request, response) => response.write('[{"n":1},', () => response.destroy());
const ENDED_IN_ORDER = '[{"n":1}\r\n__exception__\r\nCode: 395. DB::Exception: too far.';
const TOO_FAR = "SELECT throwIf(number = 3e6, 'too far') AS n FROM numbers(4e6) SETTINGS max_block_size = 1000";
const ask = (own: Warehouse): Promise<unknown> => select(own, 'SELECT 1');
const EACH_KIND = [
  ask,
  (own: Warehouse): Promise<unknown> => insertRows(own, 'a', [{ n: 1 }]),
  (own: Warehouse): Promise<unknown> => execute(own, 'OPTIMIZE TABLE a'),
];

it.each<[string, string, object, () => Promise<unknown>]>([
  [
    'an error of ClickHouse',
    'rejected',
    { code: '47', type: 'UNKNOWN_IDENTIFIER' },
    () => select(database.warehouse, 'SELECT nothing'),
  ],
  [
    'an error of ClickHouse after the first rows',
    'rejected',
    { code: '395', message: expect.stringContaining('too far') },
    () => select(database.warehouse, TOO_FAR),
  ],
  [
    'half a response that ends in order',
    'foreign',
    { name: 'ForeignResponseError' },
    () => withServer(responding(ENDED_IN_ORDER), ask),
  ],
  [
    'an insert of which fewer rows were written',
    'foreign',
    { message: 'insert_usage_events wrote 1 rows of 2' },
    () => withServer(responding(''), (own) => insertUsageEvents(own, [pricedEvent(), pricedEvent()])),
  ],
  ...[400, 502, 503].flatMap((status) =>
    ['<h1>Bad gateway</h1>', ''].map((text): [string, string, object, () => Promise<unknown>] => [
      `a proxy that answers ${status} with "${text}"`,
      'foreign',
      { name: 'ForeignResponseError' },
      () =>
        withServer((request, response) => request.resume().on('end', () => response.writeHead(status).end(text)), ask),
    ]),
  ),
  ['half a response', 'away', { code: 'ECONNRESET' }, () => withServer(HALF_A_RESPONSE, ask)],
  ['a server that is away', 'away', { code: 'ECONNREFUSED' }, () => withWarehouse({ url: NOWHERE }, ask)],
  [
    'a server that does not answer in time',
    'away',
    { code: 'ETIMEDOUT', message: 'no response within 200 ms' },
    () => withWarehouse({ requestTimeoutMs: 200 }, (hasty) => select(hasty, HALF_A_MINUTE)),
  ],
  ...EACH_KIND.map((send): [string, string, object, () => Promise<unknown>] => [
    'a server that is no ClickHouse',
    'foreign',
    {},
    () => withServer(responding('<h1>Welcome</h1>'), send),
  ]),
])('a statement fails at %s, which is %s', async (_what, kind, error, send) => {
  const failure = await failureOf(send());
  expect(failure).toMatchObject(error);
  expect(clickHouseFailureKind(failure)).toBe(kind);
});

it.each([
  ['a bug of ours', new TypeError('no function')],
  ['a bug that Node finds', Object.assign(new RangeError('out of range'), { code: 'ERR_OUT_OF_RANGE' })],
])('%s is no failure of the server', (_what, error) => {
  expect(clickHouseFailureKind(error)).toBe('defect');
});

it('an insert is complete when more rows were written, as by a materialized view, or no proxy lets through how many', async () => {
  for (const headers of [{ 'X-ClickHouse-Summary': '{"written_rows":"2"}' }, {}]) {
    const stored: RequestListener = (request, response) =>
      request.resume().on('end', () => response.writeHead(200, headers).end());
    await withServer(stored, (own) => insertUsageEvents(own, [pricedEvent()]));
  }
});

it('a running statement fails immediately when the connection is closed', async () => {
  const closed = createWarehouse(database.options);
  const failure = failureOf(select(closed, HALF_A_MINUTE));
  await select(closed, 'SELECT 1');
  await closed.close();
  // A statement that did not fail at once would have a result.
  expect(clickHouseFailureKind(await failure)).toBe('away');
});

it.each([
  ['small VALUES (1, 1), (10, 1)', '469', true],
  ['small VALUES (1, toDecimal128(1e30, 9))', '407', true],
  ['nowhere VALUES (1)', '60', false],
  ['small SELECT number % 10, number FROM numbers(1e6) SETTINGS max_memory_usage = 1000', '241', false],
])('an insert into %s fails with %s, which is about the rows themselves: %s', async (insert, code, isOfRows) => {
  const columns = 'x UInt8, d Decimal(38, 9), CONSTRAINT small CHECK x < 10';
  await execute(database.warehouse, `CREATE TABLE IF NOT EXISTS small (${columns}) ENGINE = MergeTree ORDER BY x`);
  const error = await failureOf(execute(database.warehouse, `INSERT INTO ${insert}`));
  expect([error, isContentError(error)]).toEqual([expect.objectContaining({ code }), isOfRows]);
  for (const other of [new Error(code), code, undefined, { code }]) expect(isContentError(other)).toBe(false);
});

/** The second request loses its connection, as if the server had closed it while it idled. */
it.each<[string, string, (own: Warehouse, n: number) => Promise<unknown>, number, unknown]>([
  ['a SELECT is sent again', '[{"n":1}]', ask, 3, undefined],
  ['an insert is sent again', '', (own, n) => insertRows(own, 'a', [{ n }]), 3, undefined],
  [
    'any other statement, which may be running, fails',
    '',
    (own, n) => execute(own, `ALTER TABLE a DELETE WHERE n = ${n}`),
    2,
    { code: 'ECONNRESET' },
  ],
])('when a connection was closed while it idled, %s', async (_what, result, send, expected, failure) => {
  let requests = 0;
  const dropping: RequestListener = (request, response) => {
    requests += 1;
    if (requests === 2) request.socket.destroy();
    else responding(result)(request, response);
  };
  const ended = await withServer(dropping, async (own) => {
    await send(own, 1);
    return failureOf(send(own, 2)).catch(() => undefined);
  });
  expect(requests).toBe(expected);
  expect(ended).toEqual(failure && expect.objectContaining(failure));
});

it('hosts are tried in order, even for a statement that must not be sent twice, because a host that refuses the connection has received nothing', async () => {
  await withServer(
    responding(''),
    (own) => execute(own, 'ALTER TABLE a ADD COLUMN n UInt8'),
    (url) => ({ url: `${NOWHERE},${url}` }),
  );
});

it('a host that does not respond in time gets no more statements while another host responds', async () => {
  let unanswered = 0;
  await withServer(
    () => {
      unanswered += 1;
    },
    async (own) => {
      expect(await failureOf(ask(own))).toMatchObject({ code: 'ETIMEDOUT' });
      for (let n = 0; n < 3; n += 1) expect(await select(own, 'SELECT 1 AS n')).toEqual([{ n: 1 }]);
      expect(await own.ping()).toBe(true);
    },
    (silent) => ({ url: `${silent},${database.options.url}`, requestTimeoutMs: 1_000 }),
  );
  expect(unanswered).toBe(1);
});

it('a ping succeeds while a statement is running', async () => {
  expect(await withWarehouse({ url: NOWHERE }, (away) => away.ping())).toBe(false);
  const { first, failure } = await withWarehouse({}, async (busy) => {
    const failure = failureOf(select(busy, HALF_A_MINUTE));
    return { first: await Promise.race([busy.ping(), failure]), failure };
  });
  expect(first).toBe(true);
  expect(clickHouseFailureKind(await failure)).toBe('away');
});

const RULE = 'must be a URL such as http://127.0.0.1:8123';

it.each([
  [undefined, ['http://127.0.0.1:8123', 'http://127.0.0.1:8123/', 'https://x.example.com', 'http://[::1]:8123']],
  [RULE, ['', '127.0.0.1', 'localhost:8123', 'tcp://127.0.0.1:9000', 'redis://127.0.0.1']],
  [
    `${RULE} and nothing more: set user, password and database with CLICKHOUSE_USER, CLICKHOUSE_PASSWORD and CLICKHOUSE_DATABASE`,
    ['127.0.0.1/system', '127.0.0.1?database=x', '127.0.0.1/#x', 'ann:pass@x', 'ann@x', ':pass@x'].map(
      (address) => `http://${address}`,
    ),
  ],
])('an address of ClickHouse has the error %s: %j', (problem, urls) => {
  for (const url of urls) expect([url, clickHouseUrlProblem(url)]).toEqual([url, problem]);
});
