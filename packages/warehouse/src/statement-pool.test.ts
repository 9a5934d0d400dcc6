import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { failureOf } from '../../../test/failure.js';
import { createTestDatabase, type TestDatabase } from '../../../test/stack.js';
import { createWarehouse } from './client.js';
import { clickHouseFailureKind } from './errors.js';
import type { StatementPool } from './statement-pool.js';

let database: TestDatabase;
let statements: StatementPool;

beforeAll(async () => {
  database = await createTestDatabase();
  statements = database.warehouse.statements;
});
afterAll(() => database.drop());

/** @returns the server's address */
async function listening(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
}

describe('a statement', () => {
  it('is answered with its rows', async () => {
    expect(await statements.read('SELECT number AS n FROM numbers(2) ORDER BY n', {})).toEqual([
      { n: '0' },
      { n: '1' },
    ]);
  });

  it('without rows is answered with none', async () => {
    expect(await statements.read('SELECT 1 AS n WHERE 0', {})).toEqual([]);
  });

  it.each(['plain', "it's", 'back\\slash', 'tab\tline\nreturn\r', '\\n is no line', '+ & = % ?', '名前 😀', ''])(
    'has the text %j as a parameter',
    async (text) => {
      expect(await statements.read('SELECT {text: String} AS text', { text })).toEqual([{ text }]);
    },
  );

  it('has a number as a parameter', async () => {
    expect(await statements.read('SELECT {n: Int64} + 1 AS n', { n: -1_759_276_800_000 })).toEqual([
      { n: '-1759276799999' },
    ]);
  });

  it('runs in the database of the pool, with the settings of every statement', async () => {
    const settings = "SELECT currentDatabase() AS name, getSetting('async_insert') AS async_insert";
    expect(await statements.read(settings, {})).toEqual([{ name: database.options.database, async_insert: false }]);
  });
});

describe('a failure', () => {
  it('is the error of ClickHouse where it refuses', async () => {
    const error = await failureOf(statements.read('SELECT nothing', {}));
    expect(error).toMatchObject({ code: '47', type: 'UNKNOWN_IDENTIFIER' });
    expect(clickHouseFailureKind(error)).toBe('refused');
  });

  it('tells of an answer that breaks off: half of it is none', async () => {
    const late = "SELECT throwIf(number = 3e6, 'too far') AS n FROM numbers(4e6) SETTINGS max_block_size = 1000";
    const error = await failureOf(statements.read(late, {}));
    expect(clickHouseFailureKind(error)).toBe('away');
  });

  it('tells of a server that is away', async () => {
    const away = createWarehouse({ ...database.options, url: 'http://127.0.0.1:1' });
    const error = await failureOf(away.statements.read('SELECT 1', {}));
    await away.close();
    expect(clickHouseFailureKind(error)).toBe('away');
  });

  it('tells of a server that does not answer in time', async () => {
    const hasty = createWarehouse({ ...database.options, requestTimeoutMs: 200 });
    const error = await failureOf(hasty.statements.read('SELECT sleep(3)', {}));
    await hasty.close();
    expect(clickHouseFailureKind(error)).toBe('away');
  });

  it('of what is under way comes with the end of the pool, at once', async () => {
    const warehouse = createWarehouse(database.options);
    const started = performance.now();
    const failure = failureOf(warehouse.statements.read('SELECT sleep(3)', {}));
    await warehouse.statements.read('SELECT 1', {});
    await warehouse.close();
    expect(clickHouseFailureKind(await failure)).toBe('away');
    expect(performance.now() - started).toBeLessThan(2_500);
  });

  it('of a connection that was closed while it idled is none: the statement is sent again', async () => {
    let requests = 0;
    const closing = createServer((request, response) => {
      requests += 1;
      if (requests === 2) request.socket.destroy();
      else response.end('[{"n":1}]');
    });
    const warehouse = createWarehouse({ ...database.options, url: await listening(closing) });
    for (let question = 0; question < 2; question += 1) {
      expect(await warehouse.statements.read('SELECT 1 AS n', {})).toEqual([{ n: 1 }]);
    }
    expect(requests).toBe(3);
    await warehouse.close();
    closing.close();
  });

  it('tells of a server that is another', async () => {
    const foreign = createServer((_request, response) => response.end('<h1>Welcome</h1>'));
    const warehouse = createWarehouse({ ...database.options, url: await listening(foreign) });
    const error = await failureOf(warehouse.statements.read('SELECT 1', {}));
    await warehouse.close();
    foreign.close();
    expect(clickHouseFailureKind(error)).toBe('foreign');
  });
});
