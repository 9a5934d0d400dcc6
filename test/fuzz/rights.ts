/** No user has a right too many. Also test/e2e/redis-users.it.test.ts and clickhouse-users.it.test.ts. */
import { QUEUE_NAME } from '@meterline/catalog';
import { createWarehouse } from '@meterline/warehouse';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { createUsers, urlOfUser } from '../harness/redis-users.js';
import { select } from '../harness/stack.js';
import { type Fuzz, type FuzzInput, throwAll } from './run.js';

const SECRET = 'the name of a customer';
const KEY = 'meterline:fuzzed';
/** Of the producer's rights: what it may call. Their keys are judged by what is changed. */
const ITS_OWN = new Set(
  'hello auth ping info quit client|setname eval evalsha exists hget hmget hset hmset incr llen lpush rpush xadd zadd zrange zrevrangebyscore zscore wait asking readonly readwrite cluster|info cluster|keyslot cluster|slots'.split(
    ' ',
  ),
);

export const producerFuzz: Fuzz = {
  name: 'producer',
  what: "every command that Redis knows, with a producer's credentials",
  run: async ({ site }: FuzzInput) => {
    const faults: string[] = [];
    await createUsers(site.redis);
    const url = urlOfUser(site.redisUrl, 'producer');
    const queue = new Queue(QUEUE_NAME, { connection: { url } });
    const producer = new Redis(url, { enableReadyCheck: false });
    try {
      const job = `bull:${QUEUE_NAME}:${(await queue.add('usage', { events: [SECRET] })).id}`;
      await site.redis.hset(KEY, { secret: SECRET });
      const before = await Promise.all([KEY, job].map((key) => site.redis.dumpBuffer(key)));
      const known = namesOf(await site.redis.call('COMMAND', 'LIST'));
      // What concerns its own connection alone it may do, as every user; what is an administrator's among it, it may not.
      const ofConnections = new Set(namesOf(await site.redis.acl('CAT', 'connection')));
      for (const name of namesOf(await site.redis.acl('CAT', 'admin'))) ofConnections.delete(name);
      // A command that has subcommands is nothing without one.
      const commands = known.filter(
        (name) => !ofConnections.has(name) && !known.some((other) => other.startsWith(`${name}|`)),
      );
      let calls = 0;
      for (const command of commands) {
        const [name = '', ...subcommand] = command.split('|');
        const outcomes: Outcome[] = [];
        for (const args of argumentsFor([KEY, job, `bull:${QUEUE_NAME}:wait`])) {
          calls += 1;
          const answer = await producer.call(name, ...subcommand, ...args).catch((error: unknown) => error);
          outcomes.push(outcomeOf(answer));
          if (JSON.stringify(answer).includes(SECRET)) faults.push(`${command} shows data: ${args.join(' ')}`);
        }
        const isRefused = outcomes.includes('refused') && !outcomes.includes('allowed');
        if (!isRefused && !ITS_OWN.has(command))
          faults.push(`${command} is not refused: ${[...new Set(outcomes)].join(', ')}`);
      }
      const after = await Promise.all([KEY, job].map((key) => site.redis.dumpBuffer(key)));
      if (String(after[0]) !== String(before[0])) faults.push('a key outside of the queue is another');
      if (after[1] === null) faults.push('a job is gone');
      throwAll(faults);
      return {
        sent: `${calls} calls of ${commands.length} commands`,
        stood: 'nothing but its own is allowed; no data shown',
      };
    } finally {
      producer.disconnect();
      await queue.close();
    }
  },
};

function namesOf(list: unknown): string[] {
  return Array.isArray(list) ? list.map(String) : [];
}

type Outcome = 'refused' | 'malformed' | 'allowed';

/** Redis counts the arguments before it looks at rights. */
function outcomeOf(answer: unknown): Outcome {
  if (!(answer instanceof Error)) return 'allowed';
  // The second is what Redis says to everybody about commands that its configuration turns off.
  if (/NOPERM|command not allowed/i.test(answer.message)) return 'refused';
  return /wrong number of arguments|unknown (sub)?command/i.test(answer.message) ? 'malformed' : 'allowed';
}

/** So many that every command has its number of arguments at least once, and those that show data where they are. */
function argumentsFor(keys: readonly string[]): string[][] {
  const counts = Array.from({ length: 9 }, (_, count) => count);
  const fields = [['secret'], ['data'], ['0', '-1']];
  return keys.flatMap((key) => [
    ...counts.flatMap((count) => [Array(count).fill(key), ['1', ...Array(count).fill(key)]]),
    ...fields.map((field) => [key, ...field]),
  ]);
}

type Right = 'read' | 'insert' | 'delete';
type Rights = Readonly<Record<Right, readonly string[]>>;

const ROLLUPS = ['usage_hourly', 'usage_daily', 'dirty_hours'];
const OF_ACCOUNTS = ['usage_events', ...ROLLUPS];
/** What clickhouse/users.xml says, in other words. Everything else must be refused. */
const RIGHTS: Readonly<Record<'ingest' | 'query' | 'operator' | 'migrate', Rights>> = {
  ingest: {
    read: ['schema_migrations', 'price_books', 'rollup_watermarks', 'retention_bounds', ...OF_ACCOUNTS],
    insert: ['price_books', 'rollup_watermarks', 'rejected_events', ...OF_ACCOUNTS],
    delete: [],
  },
  query: {
    read: ['schema_migrations', 'price_books', 'rollup_watermarks', 'retention_bounds', 'result_pages', ...OF_ACCOUNTS],
    insert: ['result_pages'],
    delete: [],
  },
  operator: {
    read: [
      ...['schema_migrations', 'price_books', 'rollup_watermarks', 'result_pages', ...OF_ACCOUNTS],
      ...['rejected_events', 'settled_rejections', 'retention_bounds'],
    ],
    insert: ['price_books', 'settled_rejections', 'retention_bounds', ...OF_ACCOUNTS],
    delete: ['result_pages', 'rejected_events', ...OF_ACCOUNTS],
  },
  migrate: { read: ['schema_migrations'], insert: ['schema_migrations'], delete: [] },
};
const OF_ROWS: Readonly<Record<Right, readonly ((table: string) => string)[]>> = {
  read: [(table) => `SELECT * FROM ${table} LIMIT 1`, (table) => `SELECT count() FROM (SELECT * FROM ${table})`],
  insert: [
    (table) => `INSERT INTO ${table} SELECT * FROM ${table}`,
    (table) => `INSERT INTO ${table} FORMAT JSONEachRow {}`,
  ],
  delete: [(table) => `ALTER TABLE ${table} DELETE WHERE 0`, (table) => `DELETE FROM ${table} WHERE 0`],
};
const OF_NOBODY = [
  (table: string) => `ALTER TABLE ${table} UPDATE account_id = '' WHERE 0`,
  (table: string) => `OPTIMIZE TABLE ${table}`,
  (table: string) => `RENAME TABLE ${table} TO gone`,
  (table: string) => `SYSTEM STOP MERGES meterline.${table}`,
  (table: string) => `BACKUP TABLE ${table} TO File('gone')`,
  (table: string) => `INSERT INTO FUNCTION file('gone', TSV) SELECT * FROM ${table}`,
];
const OF_MIGRATE = [
  (table: string) => `ALTER TABLE ${table} ADD COLUMN gone UInt8`,
  (table: string) => `ALTER TABLE ${table} MODIFY SETTING merge_with_ttl_timeout = 1`,
  (table: string) => `DROP TABLE ${table}`,
  (table: string) => `CREATE TABLE gone AS ${table}`,
];

export const grantsFuzz: Fuzz = {
  name: 'grants',
  what: 'every statement on every table by each user of ClickHouse that it is not for',
  run: async ({ site }: FuzzInput) => {
    const faults: string[] = [];
    const { url, passwords } = site.clickhouse;
    const tables = await select<{ name: string }>(site.warehouse, 'SHOW TABLES');
    let statements = 0;
    for (const user of ['ingest', 'query', 'operator', 'migrate'] as const) {
      const warehouse = createWarehouse({
        url,
        user,
        password: passwords[user],
        database: 'meterline',
        application: 'fuzz',
      });
      for (const { name } of tables) {
        const forbidden = (['read', 'insert', 'delete'] as const).flatMap((right) =>
          RIGHTS[user][right].includes(name) ? [] : OF_ROWS[right],
        );
        for (const statement of [...forbidden, ...OF_NOBODY, ...(user === 'migrate' ? [] : OF_MIGRATE)]) {
          const query = statement(name);
          statements += 1;
          const outcome = await warehouse
            .run({ name: 'fuzz', query, query_params: {} })
            .catch((error: unknown) => error);
          if (!String(outcome).includes('Not enough privileges'))
            faults.push(`${user} is not refused: ${query}: ${outcome}`);
        }
      }
      await warehouse.close();
    }
    throwAll(faults);
    return { sent: `${statements} statements`, stood: 'all refused' };
  },
};
