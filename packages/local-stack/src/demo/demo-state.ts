/** How far the demo's history goes, so that the next start continues it. */
import { type EpochMs, MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { z } from 'zod';
import { readPrivateFile, writePrivateFile } from '../start/private-file.js';

const HISTORY_DAYS = 92;

const schema = z.object({
  /** The hour of the first start: before it there is history, from it on the trace plays live. */
  firstHour: z.number(),
  /** The fleet's hours before this one are in the queue or beyond. */
  nextHour: z.number(),
});
export type DemoState = z.output<typeof schema>;

/** @param file says where the last start got to; for the first one three months lie ahead */
export async function readDemoState(file: string, now: EpochMs): Promise<DemoState> {
  const thisHour = now - (now % MS_PER_HOUR);
  return (
    (await readPrivateFile(file, schema)) ?? { firstHour: thisHour, nextHour: thisHour - HISTORY_DAYS * MS_PER_DAY }
  );
}

export async function writeDemoState(file: string, state: DemoState): Promise<void> {
  await writePrivateFile(file, state);
}
