/** Reads the environment variables of a service. Reports one line for each invalid variable. */
import { QUEUE_PREFIX } from '@meterline/catalog/plain';
import type { WarehouseOptions } from '@meterline/warehouse';
import { clickHouseUrlProblem, hostsOf } from '@meterline/warehouse/addresses';
import { z } from 'zod';
import { redisUrlProblem } from './redis-address.js';

export const redisUrlVariable = z.string().superRefine(checkedBy(redisUrlProblem));

/** One or more addresses, separated by commas. They contain no user, password or database, because those have their own variables. */
export const clickHouseUrlVariable = z.string().superRefine(checkedBy(clickHouseUrlProblem));

function checkedBy(problemOf: (text: string) => string | undefined) {
  return (text: string, context: z.RefinementCtx) => {
    const message = problemOf(text);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  };
}

/** Accepts only decimal digits. `Number()` alone would also accept "", " 7", "1e3" and "0x10". */
export function wholeNumberVariable(min: number, max: number) {
  const rule = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,15}$/, rule)
    .transform(Number)
    .refine((value) => value >= min && value <= max, rule);
}

/** The page shows the address in shell commands, so the address must not contain shell metacharacters. */
const WEB_ADDRESS = /^https?:\/\/[\w.:[\]-]+(\/[\w.~%-]+)*\/?$/;

/** Parses the address of a service, and removes a trailing slash. The address may have a path if the service is behind a proxy. */
export function webAddressVariable(example: string) {
  return z
    .string()
    .regex(WEB_ADDRESS, `must be a URL such as ${example}`)
    .transform((url) => url.replace(/\/$/, ''))
    .optional();
}

const hostVariable = z.union([z.ipv4(), z.ipv6()], 'must be an IP address of this machine, such as 127.0.0.1');

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

export const processVariables = {
  REDIS_URL: redisUrlVariable
    .default('redis://127.0.0.1:6379')
    .describe(
      'Address of Redis, with the scheme `redis://`, `rediss://` or `redis+sentinel://`. It must be a single server, not a cluster, with AOF and with `maxmemory-policy noeviction`, which every program checks. The collector also requires `appendfsync always`. Add `?durability=assumed` if Redis is durable but does not report its settings.',
    ),
  LISTEN_HOST: hostVariable
    .optional()
    .describe('IP address to listen on, for `PORT` and `ADMIN_PORT`. Not set: all addresses, which containers need.'),
  ADMIN_PORT: wholeNumberVariable(0, 65_535)
    .optional()
    .describe('Port of `/healthz` and `/metrics`, without authentication. Not set: no such port. 0: any free port.'),
  LOG_LEVEL: z
    .enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`)
    .default('info')
    .describe(`One of ${LOG_LEVELS.join(', ')}.`),
};

export const queueVariables = {
  QUEUE_PREFIX: z.string().default(QUEUE_PREFIX).describe('Prefix of the BullMQ keys in Redis.'),
};

export function statementMemoryVariable(megabytes: number) {
  return wholeNumberVariable(16, 1_000_000)
    .default(megabytes)
    .describe('Maximum memory of one ClickHouse statement, in MB.');
}

export const priceBookVariable = z
  .string()
  .optional()
  .describe('Path of a price book (JSON). Give all programs the same book. Not set: the example book.');

export const catalogVariable = z
  .string()
  .optional()
  .describe(
    'Path of a catalog (JSON) with billing dimensions to add. Give all programs the same catalog. Not set: only the built-in dimensions.',
  );

export const serverVariables = {
  ...processVariables,
  CLICKHOUSE_URL: clickHouseUrlVariable
    .default('http://127.0.0.1:8123')
    .describe('Address of the ClickHouse server, or the addresses of a cluster, separated by commas.'),
  CLICKHOUSE_USER: z
    .string()
    .default('default')
    .describe('ClickHouse user. Each program may have its own user, with few rights.'),
  CLICKHOUSE_PASSWORD: z.string().default('').describe('Password of the ClickHouse user.'),
  CLICKHOUSE_DATABASE: z.string().default('meterline').describe('Database of all tables.'),
  // The next two variables select a single server, shards, or shards with replicas.
  CLICKHOUSE_CLUSTER: z
    .string()
    .regex(/^\w+$/, 'must be the name of a cluster in remote_servers, of letters, digits and _')
    .optional()
    .describe('Name of the cluster in `remote_servers`. Not set: a single server.'),
  CLICKHOUSE_INSERT_QUORUM: wholeNumberVariable(1, 100)
    .optional()
    .describe(
      'Number of replicas of a shard that must have a row before the insert is acknowledged. Not set: tables are not replicated.',
    ),
};

type ServerVariables = z.output<z.ZodObject<typeof serverVariables>>;

/** @throws EnvError if an insert quorum or several servers are set without the name of a cluster */
export function warehouseOptions(
  env: Omit<ServerVariables, keyof typeof processVariables>,
  application: string,
): WarehouseOptions {
  const { CLICKHOUSE_CLUSTER: name, CLICKHOUSE_INSERT_QUORUM: insertQuorum } = env;
  if (name === undefined && insertQuorum !== undefined) {
    throw new EnvError([
      'CLICKHOUSE_INSERT_QUORUM is for replicas; set CLICKHOUSE_CLUSTER to the name of their cluster',
    ]);
  }
  if (name === undefined && hostsOf(env.CLICKHOUSE_URL).length > 1) {
    throw new EnvError(['CLICKHOUSE_URL names several servers; set CLICKHOUSE_CLUSTER to the name of their cluster']);
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
 * Returns the schema of a constant, which is a value that operators have no reason to change. Tests and experiments can override all
 * constants in a single variable ({@link constantsVariable}).
 * @param reason why the constant has this value, for docs/configuration.md
 */
export function constant(value: number, reason: string) {
  return z.int().min(0).default(value).describe(reason);
}

/** The maximum time for stopping a service. Container runtimes kill the process 10 s after SIGTERM. */
export const STOP_DEADLINE_MS = 8_000;

/** A worker renews the locks of its jobs. If its process dies, another process takes over the jobs within 4/3 of this time. */
export const lockConstant = {
  lockMs: z
    .int()
    .min(1_000)
    .default(15_000)
    .describe('How long jobs stay locked after their process dies, until another process takes them over.'),
};

/** Returns the schema of a variable that overrides constants with JSON, such as `{"holdMs": 0}`. */
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
    .describe('Overrides of the constants below, as JSON. For tests and experiments.');
}

export class EnvError extends Error {
  override readonly name = 'EnvError';

  constructor(readonly problems: readonly string[]) {
    super(problems.join('\n'));
  }
}

/** Parses the variables. An empty variable counts as not set. @throws EnvError */
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
