import { MAX_EVENTS_PER_JOB } from '@meterline/catalog';
import {
  catalogVariable,
  constant,
  constantsVariable,
  lockConstant,
  priceBookVariable,
  queueVariables,
  readEnvironment,
  STOP_DEADLINE_MS,
  serverVariables,
  statementMemoryVariable,
} from '@meterline/service/environment';
import { z } from 'zod';

export const constants = {
  batchRows: constant(65_000, 'Approximate maximum number of rows per insert.'),
  flushMs: constant(
    100,
    'How long a row waits for others before it is inserted; up to five times as long while inserts are slow.',
  ),
  concurrency: constant(1_000, 'Maximum number of jobs processed concurrently; lower while jobs are large.'),
  ...lockConstant,
  shutdownMs: constant(
    STOP_DEADLINE_MS,
    'Maximum duration of a shutdown after SIGTERM: container runtimes kill after 10 s.',
  ),
  sealDelayMs: constant(
    300_000,
    'How long after its end an hour is sealed. Most events have arrived by then; each later one costs a recomputed row.',
  ),
  maintenanceEveryMs: constant(
    2_000,
    'How often dirty hours are recomputed and due hours are sealed; until then they are read from the events. 0: never by this process.',
  ),
};

export const environment = z.object({
  ...serverVariables,
  PRICE_BOOK: priceBookVariable,
  CATALOG: catalogVariable,
  ...queueVariables,
  STATEMENT_MB: statementMemoryVariable(8_192),
  METERLINE_CONSTANTS: constantsVariable(constants),
});

export type Env = z.output<typeof environment>;

export function readEnv(variables: NodeJS.ProcessEnv): Env {
  return readEnvironment(environment, variables);
}

/** Slightly more than the usual 250 characters of an event as JSON. */
const CHARACTERS_PER_EVENT = 300;

/** Returns the maximum size of the data of jobs in progress. The size is enough for one running insert and the next one being collected. */
export function maxDataInWork(batchRows: number): number {
  return 2 * CHARACTERS_PER_EVENT * Math.max(batchRows, MAX_EVENTS_PER_JOB);
}
