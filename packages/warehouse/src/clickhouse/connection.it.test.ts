import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { TupleParam } from '@clickhouse/client';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { failureOf } from '../../../../test/harness/failure.js';
import { createTestDatabase, execute, select, type TestDatabase } from '../../../../test/harness/stack.js';
import { clickHouseUrlFault } from '../addresses.js';
import { readResourceTypes } from '../metrics/read.js';
import { prepareRejectedEvents } from '../operations/rejections.js';
import { checkConnection, createWarehouse, insertRows, type Warehouse, type WarehouseOptions } from './connection.js';
import { clickHouseFailureKind } from './errors.js';

let database: TestDatabase;
let warehouse: Warehouse;

beforeAll(async () => {
  database = await createTestDatabase();
  warehouse = database.warehouse;
});
afterAll(() => database.drop());

const HALF_A_MINUTE = 'SELECT sleepEachRow(3) FROM numbers(10) SETTINGS max_block_size = 1';
const NOWHERE = 'http://127.0.0.1:1';

/** Does `work` with a connection of its own. */
async function withWarehouse<T>(changes: Partial<WarehouseOptions>, work: (own: Warehouse) => Promise<T>): Promise<T> {
  const own = createWarehouse({ ...database.options, ...changes });
  try {
    return await work(own);
  } finally {
    await own.close();
  }
}

/** Does `work` with a connection to a server that answers so. */
async function withServer<T>(
  answer: RequestListener,
  work: (own: Warehouse) => Promise<T>,
  options: (url: string) => Partial<WarehouseOptions> = (url) => ({ url }),
): Promise<T> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  try {
    return await withWarehouse(options(`http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`), work);
  } finally {
    server.close();
  }
}

/** A server that drops the second request's connection. @returns how many requests came, and what the work ended with */
async function withLostConnection(work: (own: Warehouse) => Promise<unknown>, answer = '') {
  let requests = 0;
  const dropping: RequestListener = (request, response) => {
    requests += 1;
    if (requests === 2) request.socket.destroy();
    else request.resume().on('end', () => response.end(answer));
  };
  const ended = await withServer(dropping, work);
  return { requests, ended };
}

describe('a statement', () => {
  it('is answered with its rows', async () => {
    expect(await select(warehouse, 'SELECT number AS n FROM numbers(2) ORDER BY n')).toEqual([{ n: '0' }, { n: '1' }]);
  });

  it('without rows is answered with none', async () => {
    expect(await select(warehouse, 'SELECT 1 AS n WHERE 0')).toEqual([]);
  });

  const TEXTS = ['plain', "it's", 'back\\slash', 'tab\tline\nreturn\r', '\\n is no line', '+ & = % ?', '名前 😀', ''];

  it.each(TEXTS)('has the text %j as a parameter', async (text) => {
    expect(await select(warehouse, 'SELECT {text: String} AS text', { text })).toEqual([{ text }]);
  });

  it('has a number as a parameter', async () => {
    expect(await select(warehouse, 'SELECT {n: Int64} + 1 AS n', { n: -1_759_276_800_000 })).toEqual([
      { n: '-1759276799999' },
    ]);
  });

  it.each([
    ['few', 1],
    ['more than an address may hold', 300],
  ])('has lists and tuples as parameters: %s', async (_many, times) => {
    const texts = Array.from({ length: times }, () => TEXTS).flat();
    const pairs = texts.map((text, index) => new TupleParam([text, index]));
    const query =
      'SELECT {texts: Array(String)} AS texts, {pairs: Array(Tuple(String, UInt32))} AS pairs, {big: UInt64} AS big';
    const [row] = await select(warehouse, query, { texts, pairs, big: 2n ** 64n - 1n });
    expect(row).toEqual({ texts, pairs: texts.map((text, index) => [text, index]), big: '18446744073709551615' });
  });

  it('that writes has as many parameters', async () => {
    await execute(warehouse, 'CREATE TABLE named (name String) ENGINE = MergeTree ORDER BY name');
    const names = Array.from({ length: 5_000 }, (_, index) => `name ${index}'s`);
    await execute(warehouse, 'INSERT INTO named SELECT arrayJoin({names: Array(String)})', { names });
    expect(await select(warehouse, 'SELECT toUInt32(uniqExact(name)) AS names FROM named')).toEqual([{ names: 5_000 }]);
  });

  it('has an address that proxies take, however long its parameters are', async () => {
    const lengths: number[] = [];
    const names = Array.from({ length: 5_000 }, (_, index) => `name ${index}`);
    const answer: RequestListener = (request, response) => {
      lengths.push(request.url?.length ?? 0);
      request.resume().on('end', () => response.end('[]'));
    };
    await withServer(answer, (own) => select(own, 'SELECT {names: Array(String)} AS names', { names }));
    expect(lengths).toEqual([expect.any(Number)]);
    expect(lengths[0]).toBeLessThan(8_192);
  });

  it('runs in the database of the connection, waits for inserts, skips no duplicate, and takes any number of partitions', async () => {
    const names = ['async_insert', 'insert_deduplicate', 'max_partitions_per_insert_block'];
    const settings = names.map((name) => `toUInt32(getSetting('${name}'))`).join(', ');
    expect(await select(warehouse, `SELECT currentDatabase() AS name, [${settings}] AS settings`)).toEqual([
      { name: database.options.database, settings: [0, 0, 0] },
    ]);
  });
});

describe('a failure', () => {
  it('is the error of ClickHouse where it refuses', async () => {
    const error = await failureOf(select(warehouse, 'SELECT nothing'));
    expect(error).toMatchObject({ code: '47', type: 'UNKNOWN_IDENTIFIER' });
    expect(clickHouseFailureKind(error)).toBe('refused');
  });

  it('is the error of ClickHouse also after the first rows: half an answer is no answer', async () => {
    const late = "SELECT throwIf(number = 3e6, 'too far') AS n FROM numbers(4e6) SETTINGS max_block_size = 1000";
    const error = await failureOf(select(warehouse, late));
    expect(error).toMatchObject({ code: '395', message: expect.stringContaining('too far') });
    expect(clickHouseFailureKind(error)).toBe('refused');
  });

  it('is half a response that ends in order', async () => {
    const error = await withServer(
      (_request, response) => response.end('[{"n":1}\r\n__exception__\r\nCode: 395. DB::Exception: too far.'),
      (own) => failureOf(select(own, 'SELECT 1')),
    );
    expect(error).toBeInstanceOf(SyntaxError);
    expect(clickHouseFailureKind(error)).toBe('foreign');
  });

  it('after the first rows without a word is one of the connection', async () => {
    const error = await withServer(
      (_request, response) => response.write('[{"n":1},', () => response.destroy()),
      (own) => failureOf(select(own, 'SELECT 1')),
    );
    expect(error).toMatchObject({ code: 'ECONNRESET' });
    expect(clickHouseFailureKind(error)).toBe('away');
  });

  it('names a server that is away', async () => {
    const error = await withWarehouse({ url: NOWHERE }, (away) => failureOf(select(away, 'SELECT 1')));
    expect(error).toMatchObject({ code: 'ECONNREFUSED' });
    expect(clickHouseFailureKind(error)).toBe('away');
  });

  it('names a server that does not answer in time', async () => {
    const error = await withWarehouse({ requestTimeoutMs: 200 }, (hasty) => failureOf(select(hasty, HALF_A_MINUTE)));
    expect(error).toMatchObject({ code: 'ETIMEDOUT', message: 'no response within 200 ms' });
    expect(clickHouseFailureKind(error)).toBe('away');
  });

  it('of what is under way comes when the connection is closed, at once', async () => {
    const closed = createWarehouse(database.options);
    const failure = failureOf(select(closed, HALF_A_MINUTE));
    await select(closed, 'SELECT 1');
    await closed.close();
    // Not at once, it would be the answer.
    expect(clickHouseFailureKind(await failure)).toBe('away');
  });

  it.each([
    ['a SELECT', (own: Warehouse) => select(own, 'SELECT 1')],
    ['an insert', (own: Warehouse) => insertRows(own, 'somewhere', [{ n: 1 }])],
    ['another statement', (own: Warehouse) => execute(own, 'OPTIMIZE TABLE somewhere')],
  ])('names a server that is no ClickHouse: %s', async (_kind, send) => {
    const error = await withServer(
      (request, response) => request.resume().on('end', () => response.end('<h1>Welcome</h1>')),
      (foreign) => failureOf(send(foreign)),
    );
    expect(clickHouseFailureKind(error)).toBe('foreign');
  });
});

describe('a connection that was closed while it idled', () => {
  it('is no failure of a SELECT, which is sent again', async () => {
    const work = async (own: Warehouse) => [await select(own, 'SELECT 1 AS n'), await select(own, 'SELECT 1 AS n')];
    expect(await withLostConnection(work, '[{"n":1}]')).toEqual({ requests: 3, ended: [[{ n: 1 }], [{ n: 1 }]] });
  });

  it('is no failure of an insert: the same rows twice change nothing', async () => {
    const work = async (own: Warehouse) => {
      await insertRows(own, 'somewhere', [{ n: 1 }]);
      await insertRows(own, 'somewhere', [{ n: 2 }]);
    };
    expect(await withLostConnection(work)).toEqual({ requests: 3, ended: undefined });
  });

  it('is one of any other statement, which may be running', async () => {
    const work = async (own: Warehouse) => {
      await execute(own, 'ALTER TABLE somewhere DELETE WHERE n = 1');
      return failureOf(execute(own, 'ALTER TABLE somewhere DELETE WHERE n = 2'));
    };
    expect(await withLostConnection(work)).toMatchObject({ requests: 2, ended: { code: 'ECONNRESET' } });
  });
});

describe('several hosts', () => {
  const ADD = 'ALTER TABLE somewhere ADD COLUMN n UInt8';

  it('are tried in order, also for a statement that must not be sent twice: one that refuses has seen nothing', async () => {
    await withServer(
      (request, response) => request.resume().on('end', () => response.end()),
      (own) => execute(own, ADD),
      (url) => ({ url: `${NOWHERE},${url}` }),
    );
  });

  it('share no silence: one that does not respond in time gets nothing more while another does', async () => {
    let unanswered = 0;
    await withServer(
      () => {
        unanswered += 1;
      },
      async (own) => {
        expect(await failureOf(select(own, 'SELECT 1'))).toMatchObject({ code: 'ETIMEDOUT' });
        for (let n = 0; n < 3; n += 1) expect(await select(own, 'SELECT 1 AS n')).toEqual([{ n: 1 }]);
        expect(await own.ping()).toBe(true);
      },
      (silent) => ({ url: `${silent},${database.options.url}`, requestTimeoutMs: 1_000 }),
    );
    expect(unanswered).toBe(1);
  });
});

describe('a ping', () => {
  it('is answered by a server', async () => {
    expect(await warehouse.ping()).toBe(true);
    expect(await withWarehouse({ url: NOWHERE }, (away) => away.ping())).toBe(false);
  });

  it('waits for no statement', async () => {
    const answer = await withWarehouse({ maxConnections: 1 }, async (busy) => {
      const failure = failureOf(select(busy, HALF_A_MINUTE));
      const first = await Promise.race([busy.ping(), failure]);
      return { first, failure };
    });
    expect(answer.first).toBe(true);
    expect(clickHouseFailureKind(await answer.failure)).toBe('away');
  });
});

describe('an observer', () => {
  const DAY = { startTime: Date.UTC(2026, 0, 1), endTime: Date.UTC(2026, 0, 2) };

  /** @returns what the observer was told, in order */
  async function observed(changes: Partial<WarehouseOptions>, work: (own: Warehouse) => Promise<void>) {
    const told: string[] = [];
    const observe = (name: string) => {
      told.push(`${name} begins`);
      return (outcome: string, error?: unknown) => void told.push(`${name} ${outcome}${error ? ' with an error' : ''}`);
    };
    await withWarehouse({ ...changes, observe }, work);
    return told;
  }

  it('learns the beginning and the end of each statement by its name', async () => {
    const told = await observed({}, async (own) => {
      await checkConnection(own);
      await readResourceTypes(own, { accounts: ['acme'], window: DAY, filters: {} });
      const event = { receivedAt: 0, jobId: '1', position: 0, accountId: '', message: '', payload: '{}' };
      await prepareRejectedEvents([{ ...event, reason: 'job_empty' }])(own);
    });
    expect(told).toEqual([
      'check_connection begins',
      'check_connection ok',
      'read_metrics begins',
      'read_metrics ok',
      'insert_rejected_events begins',
      'insert_rejected_events ok',
    ]);
  });

  it('can tell a server that refuses from one that does not answer, and gets the error', async () => {
    const refused = await observed({ database: 'not_there' }, async (own) => {
      await expect(readResourceTypes(own, { accounts: ['acme'], window: DAY, filters: {} })).rejects.toThrow(
        'not_there',
      );
    });
    expect(refused.at(-1)).toBe('read_metrics refused with an error');
    const unanswered = await observed({ url: NOWHERE }, async (own) => {
      await expect(readResourceTypes(own, { accounts: ['acme'], window: DAY, filters: {} })).rejects.toThrow(
        'ECONNREFUSED',
      );
    });
    expect(unanswered.at(-1)).toBe('read_metrics unanswered with an error');
  });
});

describe('an address of ClickHouse', () => {
  const RULE = 'must be a URL such as http://127.0.0.1:8123';

  it.each([
    [
      undefined,
      ['http://127.0.0.1:8123', 'http://127.0.0.1:8123/', 'https://clickhouse.example.com', 'http://[::1]:8123'],
    ],
    [RULE, ['', '127.0.0.1', 'localhost:8123', 'tcp://127.0.0.1:9000', 'redis://127.0.0.1']],
    [
      `${RULE} and nothing more: user, password and database are named by CLICKHOUSE_USER, CLICKHOUSE_PASSWORD and CLICKHOUSE_DATABASE`,
      ['/system', '?database=system', '/#x'].map((more) => `http://127.0.0.1:8123${more}`),
    ],
    [
      expect.stringContaining('and nothing more'),
      ['ann:secret', 'ann', ':secret'].map((user) => `http://${user}@127.0.0.1:8123`),
    ],
  ])('has the fault %s: %j', (fault, urls) => {
    for (const url of urls) expect([url, clickHouseUrlFault(url)]).toEqual([url, fault]);
  });
});
