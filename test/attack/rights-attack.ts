/** Issue: least privilege. Also test/e2e/redis-users.test.ts and clickhouse-users.test.ts. */
import { QUEUE_NAME } from '@meterline/catalog';
import { createWarehouse } from '@meterline/warehouse';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { createUsers, urlOfUser } from '../redis-users.js';
import { select } from '../stack.js';
import type { Attack, Attacked } from './attack.js';

const SECRET = 'the name of a customer';
const KEY = 'meterline:attacked';
/** Of the producer's rights: what it may call. Their keys are judged by what is changed. */
const ITS_OWN = new Set(
  'hello auth ping info quit client|setname eval evalsha exists hget hmget hset hmset incr llen lpush rpush xadd zadd zrange zrevrangebyscore zscore wait asking readonly readwrite cluster|info cluster|keyslot cluster|slots'.split(
    ' ',
  ),
);
/** They end or change the connection itself, for every user. */
const OF_CONNECTIONS = new Set(['quit', 'reset', 'hello', 'auth']);

export const producerAttack: Attack = {
  name: 'producer',
  what: "every command that Redis knows, with a producer's credentials",
  run: async ({ site, findings }: Attacked) => {
    await createUsers(site.redis);
    const url = urlOfUser(site.redisUrl, 'producer');
    const queue = new Queue(QUEUE_NAME, { connection: { url } });
    const producer = new Redis(url, { enableReadyCheck: false });
    try {
      const job = `bull:${QUEUE_NAME}:${(await queue.add('usage', { events: [SECRET] })).id}`;
      await site.redis.hset(KEY, { secret: SECRET });
      const before = await Promise.all([KEY, job].map((key) => site.redis.dumpBuffer(key)));
      const known = namesOf(await site.redis.call('COMMAND', 'LIST'));
      // A command that has subcommands is nothing without one.
      const commands = known.filter(
        (name) => !OF_CONNECTIONS.has(name) && !known.some((other) => other.startsWith(`${name}|`)),
      );
      let calls = 0;
      for (const command of commands) {
        const [name = '', ...subcommand] = command.split('|');
        const outcomes: Outcome[] = [];
        for (const args of argumentsFor([KEY, job])) {
          calls += 1;
          const answer = await producer.call(name, ...subcommand, ...args).catch((error: unknown) => error);
          outcomes.push(outcomeOf(answer));
          if (JSON.stringify(answer).includes(SECRET)) findings.add(`${command} shows data`, args.join(' '));
        }
        const isRefused = outcomes.includes('refused') && !outcomes.includes('allowed');
        if (!isRefused && !ITS_OWN.has(command))
          findings.add(`${command} is not refused`, [...new Set(outcomes)].join(', '));
      }
      const after = await Promise.all([KEY, job].map((key) => site.redis.dumpBuffer(key)));
      if (String(after[0]) !== String(before[0])) findings.add('a key outside of the queue is another');
      if (after[1] === null) findings.add('a job is gone');
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

const CELLS = ['usage_hourly', 'usage_daily', 'stale_hours'];
const OF_ACCOUNTS = ['usage_events', ...CELLS];
/** What clickhouse/users.xml says, in other words. Everything else must be refused. */
const RIGHTS: Readonly<Record<'ingest' | 'query' | 'operator' | 'migrate', Rights>> = {
  ingest: {
    read: ['schema_migrations', 'price_books', 'rollup_seals', 'retention_bounds', ...OF_ACCOUNTS],
    insert: ['price_books', 'rollup_seals', 'rejected_events', 'rejected_payloads', ...OF_ACCOUNTS],
    delete: [],
  },
  query: {
    read: ['schema_migrations', 'price_books', 'rollup_seals', 'retention_bounds', 'stored_answers', ...OF_ACCOUNTS],
    insert: ['stored_answers'],
    delete: [],
  },
  operator: {
    read: [
      ...['schema_migrations', 'price_books', 'rollup_seals', 'stored_answers', 'metrics_results', ...OF_ACCOUNTS],
      ...['rejected_events', 'rejected_payloads', 'settled_rejections', 'retention_bounds'],
    ],
    insert: ['price_books', 'settled_rejections', 'retention_bounds', ...OF_ACCOUNTS],
    delete: ['stored_answers', 'metrics_results', 'rejected_events', 'rejected_payloads', ...OF_ACCOUNTS],
  },
  migrate: { read: ['schema_migrations', 'usage_events'], insert: ['schema_migrations', 'usage_events'], delete: [] },
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

export const grantsAttack: Attack = {
  name: 'grants',
  what: 'every statement on every table by each user of ClickHouse that it is not for',
  run: async ({ site, findings }: Attacked) => {
    const { url, passwords } = site.clickhouse;
    const tables = await select<{ name: string }>(site.warehouse, 'SHOW TABLES');
    let statements = 0;
    for (const user of ['ingest', 'query', 'operator', 'migrate'] as const) {
      const warehouse = createWarehouse({
        url,
        user,
        password: passwords[user],
        database: 'meterline',
        application: 'attack',
      });
      for (const { name } of tables) {
        const forbidden = (['read', 'insert', 'delete'] as const).flatMap((right) =>
          RIGHTS[user][right].includes(name) ? [] : OF_ROWS[right],
        );
        for (const statement of [...forbidden, ...OF_NOBODY, ...(user === 'migrate' ? [] : OF_MIGRATE)]) {
          const query = statement(name);
          statements += 1;
          const outcome = await warehouse
            .run({ name: 'attack', query, query_params: {} })
            .catch((error: unknown) => error);
          if (!String(outcome).includes('Not enough privileges'))
            findings.add(`${user} is not refused`, `${query}: ${outcome}`);
        }
      }
      await warehouse.close();
    }
    return { sent: `${statements} statements`, stood: 'all refused' };
  },
};
