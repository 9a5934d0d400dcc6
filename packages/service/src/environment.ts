/** A service's environment is read once, checked as a whole, and refused with a line for every wrong variable. */
import { MAX_QUEUE_SHARDS, QUEUE_PREFIX, redisUrlFault } from '@meterline/catalog';
import type { Cluster, WarehouseOptions } from '@meterline/warehouse';
import { clickHouseUrlFault, hostsOf } from '@meterline/warehouse/addresses';
import { z } from 'zod';

/** A URL of one of the protocols; the example shows up in the message. */
export function urlVariable(protocol: RegExp, example: string) {
  return z.url({ protocol, error: `must be a URL such as ${example}` });
}

/** Where Redis is, in one of the forms of `redis-address.ts` in packages/catalog. */
export function redisUrlVariable() {
  return z.string().superRefine(refuseWith(redisUrlFault));
}

/** Where ClickHouse is, one address or several with commas, and nothing else: user, password and database have variables of their own. */
export function clickHouseUrlVariable() {
  return z.string().superRefine(refuseWith(clickHouseUrlFault));
}

function refuseWith(faultOf: (text: string) => string | undefined) {
  return (text: string, context: z.RefinementCtx) => {
    const message = faultOf(text);
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

/** Where /healthz and /metrics answer; nowhere when it is not set. 0: any free port. */
export const adminPortVariable = wholeNumberVariable(0, 65_535).optional();

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

/** What every service needs to know. Source: DESIGN section 8. */
export const processVariables = {
  REDIS_URL: redisUrlVariable().default('redis://127.0.0.1:6379'),
  LISTEN_HOST: hostVariable.optional(),
  LOG_LEVEL: z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`).default('info'),
};

/** Which of the three forms ClickHouse has: one server, shards, or shards with replicas. */
const clusterVariables = {
  /** The name of the cluster in `remote_servers`; one server when it is not set. */
  CLICKHOUSE_CLUSTER: z
    .string()
    .regex(/^\w+$/, 'must be the name of a cluster in remote_servers, of letters, digits and _')
    .optional(),
  /** How many replicas of a shard must have a row before it is acknowledged; not set: the tables are not replicated. */
  CLICKHOUSE_INSERT_QUORUM: wholeNumberVariable(1, 100).optional(),
};

interface ClusterVariables {
  readonly CLICKHOUSE_CLUSTER?: string | undefined;
  readonly CLICKHOUSE_INSERT_QUORUM?: number | undefined;
}

/** @throws EnvError for replicas without a cluster */
function clusterOf({ CLICKHOUSE_CLUSTER: name, CLICKHOUSE_INSERT_QUORUM }: ClusterVariables): Cluster | undefined {
  if (name !== undefined) return { name, insertQuorum: CLICKHOUSE_INSERT_QUORUM };
  if (CLICKHOUSE_INSERT_QUORUM === undefined) return undefined;
  throw new EnvError(['CLICKHOUSE_INSERT_QUORUM is for replicas; name their cluster in CLICKHOUSE_CLUSTER']);
}

/** Where the queues of events are. */
export const queueVariables = {
  QUEUE_PREFIX: z.string().default(QUEUE_PREFIX),
  /** How many queues producers fill in turn. Workers consume all that there are. */
  QUEUE_SHARDS: wholeNumberVariable(1, MAX_QUEUE_SHARDS).default(1),
};

/** The same for a service that stores in ClickHouse, or reads there. */
export const serverVariables = {
  ...processVariables,
  CLICKHOUSE_URL: clickHouseUrlVariable().default('http://127.0.0.1:8123'),
  CLICKHOUSE_USER: z.string().default('default'),
  CLICKHOUSE_PASSWORD: z.string().default(''),
  CLICKHOUSE_DATABASE: z.string().default('meterline'),
  ...clusterVariables,
};

interface ClickHouseVariables extends ClusterVariables {
  readonly CLICKHOUSE_URL: string;
  readonly CLICKHOUSE_USER: string;
  readonly CLICKHOUSE_PASSWORD: string;
  readonly CLICKHOUSE_DATABASE: string;
}

/** @throws EnvError for replicas without a cluster, and for several servers that are no cluster */
export function warehouseOptions(env: ClickHouseVariables, application: string): WarehouseOptions {
  const cluster = clusterOf(env);
  if (!cluster && hostsOf(env.CLICKHOUSE_URL).length > 1) {
    throw new EnvError(['CLICKHOUSE_URL names several servers; name their cluster in CLICKHOUSE_CLUSTER']);
  }
  return {
    url: env.CLICKHOUSE_URL,
    user: env.CLICKHOUSE_USER,
    password: env.CLICKHOUSE_PASSWORD,
    database: env.CLICKHOUSE_DATABASE,
    cluster,
    application,
  };
}

/** The environment cannot be used; the message has a line for every fault. */
export class EnvError extends Error {
  override readonly name = 'EnvError';

  constructor(readonly faults: readonly string[]) {
    super(faults.join('\n'));
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
  const faults = env.error.issues.map(({ path, message }) => [...path.slice(0, 1), message].join(' '));
  throw new EnvError([...new Set(faults)]);
}
