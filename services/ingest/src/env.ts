import { MAX_EVENTS_PER_JOB } from '@meterline/catalog';
import {
  adminPortVariable,
  queueVariables,
  readEnvironment,
  STOP_DEADLINE_MS,
  serverVariables,
  wholeNumberVariable,
} from '@meterline/service';
import { z } from 'zod';

/** Ten years. */
const MAX_SEAL_DELAY_MS = 315_576_000_000;

const environment = z.object({
  ...serverVariables,
  /** Path of a price book in JSON; the example book when it is not set. */
  PRICE_BOOK: z.string().optional(),
  ...queueVariables,
  /** An insert holds at most about this many rows; a quarter is enough while none is under way. */
  INGEST_BATCH_ROWS: wholeNumberVariable(1, 1_000_000).default(65_000),
  /** How long a row waits for others before it is inserted; up to five times as long while inserts take long. */
  INGEST_FLUSH_MS: wholeNumberVariable(1, 60_000).default(100),
  /** How many jobs may be in work at once, of all queues together: those of two inserts, and of the next one. */
  INGEST_CONCURRENCY: wholeNumberVariable(1, 10_000).default(6_000),
  /** Whether many jobs are taken with one command, or `one` by one as BullMQ's worker does it. */
  INGEST_TAKE: z.enum(['many', 'one'], 'must be many or one').default('many'),
  /** The most memory that ClickHouse may use for one statement, such as the recomputation of a cell. */
  INGEST_STATEMENT_MB: wholeNumberVariable(16, 1_000_000).default(8_192),
  /** How long after its end an hour is sealed: read from cells from then on. */
  SEAL_DELAY_MS: wholeNumberVariable(0, MAX_SEAL_DELAY_MS).default(300_000),
  /** How often to look for hours that are due; 0: this process seals nothing, others do. */
  SEAL_EVERY_MS: wholeNumberVariable(0, 3_600_000).default(60_000),
  /** How often to look for hours whose cells late events have made stale; 0: this process repairs nothing, others do. */
  REPAIR_EVERY_MS: wholeNumberVariable(0, 3_600_000).default(1_000),
  /** How long SIGTERM may take; container runtimes kill after 10 s. */
  SHUTDOWN_TIMEOUT_MS: wholeNumberVariable(100, 600_000).default(STOP_DEADLINE_MS),
  ADMIN_PORT: adminPortVariable,
});

export type Env = z.output<typeof environment>;

/** @throws EnvError */
export function readEnv(variables: NodeJS.ProcessEnv): Env {
  return readEnvironment(environment, variables);
}

/** An event is some 250 characters of JSON in a job. */
const BYTES_PER_EVENT = 300;

/** Room for one insert on its way and the next one being collected. */
export function maxBytesInWork({ INGEST_BATCH_ROWS }: Env): number {
  return 2 * BYTES_PER_EVENT * Math.max(INGEST_BATCH_ROWS, MAX_EVENTS_PER_JOB);
}
