/**
 * How far the demo's history goes, so that the next start continues it. It is noted for each database apart: the next
 * start may be told to use another ClickHouse, or find one that was emptied.
 */
import { type EpochMs, MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { z } from 'zod';
import { readPrivateFile, writePrivateFile } from '../start/private-file.js';

const HISTORY_DAYS = 92;

const stateSchema = z.object({
  /** The hour of the first start: before it there is history, from it on the trace plays live. */
  firstHour: z.number(),
  /** The fleet's hours before this one are in the queue or beyond. */
  nextHour: z.number(),
});
export type DemoState = z.output<typeof stateSchema>;

const fileSchema = z.record(z.string(), stateSchema);

/** Where a demo notes how far it has come. */
export interface DemoNote {
  readonly file: string;
  /** Of the database that the events end up in. */
  readonly databaseId: string;
}

/** Where the last start with this database got to; for the first one three months lie ahead. */
export async function readDemoState({ file, databaseId }: DemoNote, now: EpochMs): Promise<DemoState> {
  const thisHour = now - (now % MS_PER_HOUR);
  const first = { firstHour: thisHour, nextHour: thisHour - HISTORY_DAYS * MS_PER_DAY };
  return (await readPrivateFile(file, fileSchema))?.[databaseId] ?? first;
}

export async function writeDemoState({ file, databaseId }: DemoNote, state: DemoState): Promise<void> {
  await writePrivateFile(file, { ...(await readPrivateFile(file, fileSchema)), [databaseId]: state });
}
