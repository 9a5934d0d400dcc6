/** A service's environment is read once, checked as a whole, and refused with a line for every wrong variable. */
import { QUEUE_PREFIX } from '@meterline/catalog/plain';
import type { WarehouseOptions } from '@meterline/warehouse';
import { clickHouseUrlProblem, hostsOf } from '@meterline/warehouse/addresses';
import { z } from 'zod';
import { redisUrlProblem } from './redis-address.js';

/** Where Redis is, in one of the forms of redis-address.ts. */
export const redisUrlVariable = z.string().superRefine(refuseWith(redisUrlProblem));

/** Where ClickHouse is, one address or several with commas, and nothing else: user, password and database have variables of their own. */
export const clickHouseUrlVariable = z.string().superRefine(refuseWith(clickHouseUrlProblem));

function refuseWith(problemOf: (text: string) => string | undefined) {
  return (text: string, context: z.RefinementCtx) => {
    const message = problemOf(text);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  };
}

/** Decimal digits only: Number() alone would also take "", " 7", "1e3" and "0x10". */
export function wholeNumberVariable(min: number, max: number) {
  const rule = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,15}$/, rule)
    .transform(Number)
    .refine((value) => value >= min && value <= max, rule);
}

/** The address that a service listens on; not set: all addresses of the machine, which containers need. */
const hostVariable = z.union([z.ipv4(), z.ipv6()], 'must be an IP address of this machine, such as 127.0.0.1');

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

/** What every service needs to know. Source: DESIGN section 8. */
export const processVariables = {
  REDIS_URL: redisUrlVariable
    .default('redis://127.0.0.1:6379')
    .describe(
      'Also `rediss://` and `redis+sentinel://`. A single server (no cluster) with `maxmemory-policy noeviction`, which every program checks, and AOF. The collector also needs `appendfsync always`; set `?durability=assumed` if Redis is durable but does not report it.',
    ),
  LISTEN_HOST: hostVariable
    .optional()
    .describe('The IP address on which `PORT` and `ADMIN_PORT` listen; not set: all addresses, which containers need.'),
  ADMIN_PORT: wholeNumberVariable(0, 65_535)
    .optional()
    .describe('The port of `/healthz` and `/metrics`, without authentication; not set: nowhere. 0: any free one.'),
  LOG_LEVEL: z
    .enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`)
    .default('info')
    .describe(`One of ${LOG_LEVELS.join(', ')}.`),
};

/** Where the queue of events is. */
export const queueVariables = {
  QUEUE_PREFIX: z.string().default(QUEUE_PREFIX).describe("The prefix of BullMQ's keys."),
};

/** @param megabytes by default */
export function statementMemoryVariable(megabytes: number) {
  return wholeNumberVariable(16, 1_000_000)
    .default(megabytes)
    .describe('The most megabytes of memory that ClickHouse may use for one statement.');
}

export const priceBookVariable = z
  .string()
  .optional()
  .describe('The path of a price book in JSON, the same for these programs; not set: the example book.');

/** The variables of every service that stores in ClickHouse, or reads there. */
export const serverVariables = {
  ...processVariables,
  CLICKHOUSE_URL: clickHouseUrlVariable
    .default('http://127.0.0.1:8123')
    .describe('The address of the server, or those of a cluster with commas between them.'),
  CLICKHOUSE_USER: z.string().default('default').describe('Each program may have a user of its own, with few rights.'),
  CLICKHOUSE_PASSWORD: z.string().default('').describe('Its password.'),
  CLICKHOUSE_DATABASE: z.string().default('meterline').describe('The database of all tables.'),
  // Which of the three forms ClickHouse has: one server, shards, or shards with replicas.
  CLICKHOUSE_CLUSTER: z
    .string()
    .regex(/^\w+$/, 'must be the name of a cluster in remote_servers, of letters, digits and _')
    .optional()
    .describe('The name of the cluster in `remote_servers`; not set: one server.'),
  CLICKHOUSE_INSERT_QUORUM: wholeNumberVariable(1, 100)
    .optional()
    .describe(
      'How many replicas of a shard must have a row before it is acknowledged; not set: nothing is replicated.',
    ),
};

type ServerVariables = z.output<z.ZodObject<typeof serverVariables>>;

/** @throws EnvError for replicas without a cluster, and for several servers that are no cluster */
export function warehouseOptions(
  env: Omit<ServerVariables, keyof typeof processVariables>,
  application: string,
): WarehouseOptions {
  const { CLICKHOUSE_CLUSTER: name, CLICKHOUSE_INSERT_QUORUM: insertQuorum } = env;
  if (name === undefined && insertQuorum !== undefined) {
    throw new EnvError(['CLICKHOUSE_INSERT_QUORUM is for replicas; name their cluster in CLICKHOUSE_CLUSTER']);
  }
  if (name === undefined && hostsOf(env.CLICKHOUSE_URL).length > 1) {
    throw new EnvError(['CLICKHOUSE_URL names several servers; name their cluster in CLICKHOUSE_CLUSTER']);
  }
  return {
    url: env.CLICKHOUSE_URL,
    user: env.CLICKHOUSE_USER,
    password: env.CLICKHOUSE_PASSWORD,
    database: env.CLICKHOUSE_DATABASE,
    cluster: name === undefined ? undefined : { name, insertQuorum },
    application,
  };
}

/**
 * A constant of a service: a value that no operator has a reason to turn. It has a schema so that tests and experiments can set others, all
 * of them in one variable.
 * @param reason why it has this value, for docs/configuration.md
 */
export function constant(value: number, reason: string) {
  return z.int().min(0).default(value).describe(reason);
}

/** How long a stop may take. Container runtimes kill 10 s after SIGTERM. */
export const STOP_DEADLINE_MS = 8_000;

/** When a process dies, another takes over its jobs within four thirds of it. The lock of a job in work is renewed. */
export const lockConstant = {
  lockMs: z.int().min(1_000).default(15_000).describe('How long a process that dies keeps its jobs.'),
};

/** The variable with other values, as JSON: `{"holdMs": 0}`. */
export function constantsVariable<Shape extends z.ZodRawShape>(constants: Shape) {
  return z
    .string()
    .default('{}')
    .transform((text, context): unknown => {
      try {
        return JSON.parse(text);
      } catch {
        context.addIssue({ code: 'custom', message: 'must be JSON' });
        return z.NEVER;
      }
    })
    .pipe(z.strictObject(constants))
    .describe('Other values for the constants below, as JSON. For tests and experiments.');
}

/** The environment cannot be used; the message has a line for every error. */
export class EnvError extends Error {
  override readonly name = 'EnvError';

  constructor(readonly problems: readonly string[]) {
    super(problems.join('\n'));
  }
}

/** An empty variable counts as one that is not set. @throws EnvError */
export function readEnvironment<Schema extends z.ZodType>(
  schema: Schema,
  variables: NodeJS.ProcessEnv,
): z.output<Schema> {
  const set = Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== ''));
  const env = schema.safeParse(set);
  if (env.success) return env.data;
  const problems = env.error.issues.map(({ path, message }) => [...path.slice(0, 1), message].join(' '));
  throw new EnvError([...new Set(problems)]);
}
