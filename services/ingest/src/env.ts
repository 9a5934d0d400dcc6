import { MAX_EVENTS_PER_JOB, QUEUE_PREFIX } from '@meterline/catalog';
import { z } from 'zod';

const url = (protocols: RegExp, example: string) =>
  z.url({ protocol: protocols, error: `must be a URL such as ${example}` });

function wholeNumber(min: number, max: number) {
  return z
    .string()
    .refine((text) => /^\d{1,9}$/.test(text) && Number(text) >= min && Number(text) <= max, {
      error: `must be a whole number from ${min} to ${max}`,
    })
    .transform(Number);
}

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

const environment = z.object({
  REDIS_URL: url(/^rediss?$/, 'redis://127.0.0.1:6379').default('redis://127.0.0.1:6379'),
  CLICKHOUSE_URL: url(/^https?$/, 'http://127.0.0.1:8123').default('http://127.0.0.1:8123'),
  CLICKHOUSE_USER: z.string().default('default'),
  CLICKHOUSE_PASSWORD: z.string().default(''),
  CLICKHOUSE_DATABASE: z.string().default('meterline'),
  /** Path of a price book in JSON; the example book when it is not set. */
  PRICE_BOOK: z.string().optional(),
  QUEUE_PREFIX: z.string().default(QUEUE_PREFIX),
  /** An insert holds at most about this many rows. */
  INGEST_BATCH_ROWS: wholeNumber(1, 1_000_000).default(20_000),
  /** How long a row waits for others before it is inserted. */
  INGEST_FLUSH_MS: wholeNumber(1, 60_000).default(100),
  /** How many jobs may be in work at once. */
  INGEST_CONCURRENCY: wholeNumber(1, 10_000).default(500),
  /** How long SIGTERM may take; container runtimes kill after 10 s. */
  SHUTDOWN_TIMEOUT_MS: wholeNumber(100, 600_000).default(8_000),
  /** Where /healthz answers; nowhere when it is not set. */
  ADMIN_PORT: wholeNumber(0, 65_535).optional(),
  LOG_LEVEL: z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`).default('info'),
});

export type Env = z.output<typeof environment>;

/** The environment cannot be used; the message names every variable that is wrong. */
export class EnvError extends Error {
  override readonly name = 'EnvError';
}

/** An empty variable counts as one that is not set. @throws EnvError */
export function readEnv(variables: NodeJS.ProcessEnv): Env {
  const set = Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== ''));
  const env = environment.safeParse(set);
  if (env.success) return env.data;
  throw new EnvError(env.error.issues.map(({ path, message }) => `${path.join('.')} ${message}`).join('; '));
}

/** An event is some 250 characters of JSON in a job. */
const BYTES_PER_EVENT = 300;

/** Room for one insert on its way and the next one being collected. */
export function maxBytesInWork({ INGEST_BATCH_ROWS }: Env): number {
  return 2 * BYTES_PER_EVENT * Math.max(INGEST_BATCH_ROWS, MAX_EVENTS_PER_JOB);
}
