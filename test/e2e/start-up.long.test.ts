/** A service that cannot start ends with one line that has the reason. */
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK, DEFAULT_PRICE_BOOK_FILE } from '@meterline/catalog';
import { oneServer, registerPriceBook } from '@meterline/warehouse';
import { Redis } from 'ioredis';
import { type Product, startProduct } from '../harness/product.js';
import { launchService, type ServiceEnvironment } from '../harness/services.js';
import { createTestDatabase, execute, type TestDatabase, testRedisUrl, uniquePrefix } from '../harness/stack.js';
import { testFolder } from '../harness/test-folder.js';

/** What a service is given, and a part of the line that it ends with. A port in the line is that of the server that is named. */
type Start = readonly [service: 'ingest' | 'query', given: string, variables: () => ServiceEnvironment, line: string];

/** No line may have it. */
const PASSWORD = 'hunter2';
const NOWHERE = '127.0.0.1:1';
// RFC 6761: nobody has this name.
const NAMELESS = 'meterline.invalid:2';
const UNRESOLVED = 'its name does not resolve';
const LATER = '9999_later.sql';
const books = {
  text: 'not json\nat all\n',
  gap: bookOf((price) => (price.billingDimension === 'volume_storage_gbs' ? [] : [price]), 1),
  conflict: bookOf((price) => [{ ...price, amount: '1' }]),
};

function bookOf(change: (price: (typeof DEFAULT_PRICE_BOOK_FILE.prices)[number]) => readonly object[], version = 0) {
  return JSON.stringify({
    ...DEFAULT_PRICE_BOOK_FILE,
    version,
    prices: DEFAULT_PRICE_BOOK_FILE.prices.flatMap(change),
  });
}

const servers = {
  // It reads what comes: a socket with unread bytes does not see its end, and would keep the test's process alive.
  silent: createTcpServer((socket) => socket.on('error', () => undefined).resume()),
  http: createServer((_request, response) => response.writeHead(404).end()),
  ok: createServer((_request, response) => response.end('OK')),
  talking: createTcpServer((socket) => {
    socket.on('error', () => undefined).once('data', () => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'));
  }),
};
const hostOf = (server: Server) => `127.0.0.1:${(server.address() as AddressInfo).port}`;
const portOf = (server: Server) => `${(server.address() as AddressInfo).port}`;
const redisHost = () => new URL(testRedisUrl()).host;
const poor = uniquePrefix();

let product: Product;
let later: TestDatabase;
const folder = testFolder();
beforeAll(async () => {
  for (const [name, text] of Object.entries(books)) await writeFile(folder(`${name}.json`), text);
  for (const server of Object.values(servers)) await once(server.listen(0, '127.0.0.1'), 'listening');
  [product, later] = await Promise.all([startProduct(), createTestDatabase()]);
  const redis = new Redis(testRedisUrl());
  await redis.call('ACL', 'SETUSER', poor, 'on', `>${PASSWORD}`, '~*', '+@all', '-info');
  redis.disconnect();
  await registerPriceBook(oneServer(product.warehouse), DEFAULT_PRICE_BOOK);
  const migration = `INSERT INTO schema_migrations (version, name, checksum) VALUES (9999, '${LATER}', '${'0'.repeat(64)}')`;
  await execute(later.warehouse, migration);
});
afterAll(async () => {
  for (const server of Object.values(servers)) server.close();
  await product.redis.call('ACL', 'DELUSER', poor);
  await Promise.all([product.close(), later.drop()]);
});

const redis = (address: string) => () => ({ REDIS_URL: `redis://${address}` });
const clickhouse = (address: string) => () => ({ CLICKHOUSE_URL: `http://${address}` });
const user = (variables: ServiceEnvironment) => () => ({ CLICKHOUSE_PASSWORD: PASSWORD, ...variables });
const atServer = (server: Server, variables: (host: string) => () => ServiceEnvironment) => () =>
  variables(hostOf(server))();
const book = (name: string) => () => ({ PRICE_BOOK: folder(`${name}.json`) });

const BOTH = (['ingest', 'query'] as const).flatMap((service): Start[] => {
  const port = service === 'ingest' ? 'ADMIN_PORT' : 'PORT';
  const taken = () => ({ [port]: portOf(servers.silent), LISTEN_HOST: '127.0.0.1' });
  // RFC 5737: for documentation, so nobody has it.
  const foreign = () => ({ [port]: '0', LISTEN_HOST: '192.0.2.1' });
  return [
    [
      service,
      'no Redis',
      redis(`:${PASSWORD}@${NOWHERE}`),
      `Redis at ${NOWHERE} does not respond (connect ECONNREFUSED`,
    ],
    [service, 'a name of Redis that does not resolve', redis(NAMELESS), UNRESOLVED],
    [service, 'a name of ClickHouse that does not resolve', clickhouse(NAMELESS), UNRESOLVED],
    [service, 'no ClickHouse', clickhouse(NOWHERE), `ClickHouse at ${NOWHERE} does not respond (connect ECONNREFUSED`],
    [service, 'an unknown user of ClickHouse', user({ CLICKHOUSE_USER: 'nobody' }), 'Authentication failed'],
    [service, 'the database of a later release', () => ({ CLICKHOUSE_DATABASE: later.options.database }), LATER],
    [service, 'a port that is taken', taken, `free it or set ${port} to another`],
    [service, 'an address of another machine', foreign, 'or LISTEN_HOST to an address of this machine'],
  ];
});
const [ok, dbError] = [
  'does not respond like ClickHouse (the response is not JSON)',
  'returned an error (ERR DB index is out of range)',
];
const needsInfo =
  "cannot run INFO and the scripts of Meterline and BullMQ (NOPERM this user has no permissions to run the 'info' command)";
const REFUSED: readonly Start[] = [
  ...BOTH,
  ['query', 'a port that is none', () => ({ PORT: 'eighty' }), 'PORT must be a whole number'],
  ['query', 'no secret', () => ({ CURSOR_SECRET: '' }), 'CURSOR_SECRET is missing'],
  [
    'ingest',
    'a Redis that never answers',
    atServer(servers.silent, (host) => redis(`:${PASSWORD}@${host}`)),
    'does not respond',
  ],
  ['ingest', 'a server that is not Redis', atServer(servers.talking, redis), 'is not Redis'],
  [
    'ingest',
    'an unknown user of Redis',
    () => redis(`nobody:${PASSWORD}@${redisHost()}`)(),
    'returned an error (WRONGPASS',
  ],
  ['ingest', 'a database of Redis that does not exist', () => ({ REDIS_URL: `${testRedisUrl()}/99` }), dbError],
  ['ingest', 'a user of Redis who may not run INFO', () => redis(`${poor}:${PASSWORD}@${redisHost()}`)(), needsInfo],
  ['ingest', 'a server that knows no page', atServer(servers.http, clickhouse), 'does not respond like ClickHouse'],
  ['ingest', 'a server that says OK to everything', atServer(servers.ok, clickhouse), ok],
  ['ingest', 'a price book that does not exist', book('absent'), 'absent.json cannot be used: ENOENT'],
  ['ingest', 'a price book that is not JSON', book('text'), 'text.json cannot be used: Unexpected token'],
  ['ingest', 'a price book that leaves a dimension without a price', book('gap'), 'no price for volume_storage_gbs'],
  ['ingest', 'other prices under a version that is in use', book('conflict'), 'price book version 0 is already in use'],
];

it.each(REFUSED)(
  '%s that is given %s ends with code 1 and one line that says so',
  async (name, _given, variables, line) => {
    const service = launchService(name, { PORT: '0', ...product.env, ...variables() });
    expect(await service.exited).toEqual({ code: 1, signal: null });
    // ioredis itself says of INFO what our line does.
    const own = service.errorLines().filter((text) => !text.includes('INFO command fails'));
    expect(own).toEqual([expect.stringContaining(line)]);
    expect(own[0]).not.toContain(PASSWORD);
  },
);

it('ingest names every wrong variable, each on its own line', async () => {
  const variables = { STATEMENT_MB: '0', REDIS_URL: 'localhost', CLICKHOUSE_URL: 'http://127.0.0.1:8123/system' };
  const worker = launchService('ingest', { ...product.env, ...variables });
  expect(await worker.exited).toEqual({ code: 1, signal: null });
  expect(worker.errorLines()).toEqual([
    'meterline-ingest: REDIS_URL must be a URL such as redis://127.0.0.1:6379',
    'meterline-ingest: CLICKHOUSE_URL must be a URL such as http://127.0.0.1:8123 and nothing more: set user, password and database with CLICKHOUSE_USER, CLICKHOUSE_PASSWORD and CLICKHOUSE_DATABASE',
    'meterline-ingest: STATEMENT_MB must be a whole number from 16 to 1000000',
  ]);
});
