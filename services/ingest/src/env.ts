import { MAX_EVENTS_PER_JOB } from '@meterline/catalog';
import {
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
  batchRows: constant(
    65_000,
    'An insert holds at most about this many rows; a quarter is enough while none is under way.',
  ),
  flushMs: constant(
    100,
    'How long a row waits for others before it is inserted; up to five times as long while inserts take long.',
  ),
  concurrency: constant(4_000, 'How many jobs may be in work at once; fewer while jobs are large.'),
  ...lockConstant,
  shutdownMs: constant(STOP_DEADLINE_MS, 'How long SIGTERM may take: container runtimes kill after 10 s.'),
  sealDelayMs: constant(
    300_000,
    'How long after its end an hour is sealed: most events are there by then, and each later one costs a recomputed row.',
  ),
  maintenanceEveryMs: constant(
    2_000,
    'How often dirty hours are recomputed, and hours that are due sealed; until then they are read from the events. 0: never by this process.',
  ),
};

export const environment = z.object({
  ...serverVariables,
  PRICE_BOOK: priceBookVariable,
  ...queueVariables,
  STATEMENT_MB: statementMemoryVariable(8_192),
  METERLINE_CONSTANTS: constantsVariable(constants),
});

export type Env = z.output<typeof environment>;

/** @throws EnvError */
export function readEnv(variables: NodeJS.ProcessEnv): Env {
  return readEnvironment(environment, variables);
}

/** An event is some 250 characters of JSON in a job. */
const CHARACTERS_PER_EVENT = 300;

/** Room for one insert on its way and the next one being collected. */
export function maxDataInWork(batchRows: number): number {
  return 2 * CHARACTERS_PER_EVENT * Math.max(batchRows, MAX_EVENTS_PER_JOB);
}
