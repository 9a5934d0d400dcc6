/** Checks that every bad event is in rejected_events, with the right reason, and no more often than it was sent. */
import type { Warehouse } from '@meterline/warehouse';
import { z } from 'zod';
import { select } from '../stack.js';
import type { UsageStream } from './stream.js';
import type { Verdict } from './verdict.js';

const keptRows = z.array(z.object({ reason: z.string(), payload: z.string() }));

/** @param attempts how often a job may have been added to the queue */
export async function compareRefused(
  warehouse: Warehouse,
  { accountId, refused }: UsageStream,
  attempts: (job: number) => number,
): Promise<Verdict> {
  const query = 'SELECT reason, payload FROM rejected_events FINAL WHERE position(payload, {marks: String}) > 0';
  const kept = keptRows.parse(await select(warehouse, query, { marks: `${accountId}/refused-` }));
  const rowsOf = (mark: string) => kept.filter(({ payload }) => payload.includes(mark));
  const lost = refused.filter(({ mark, reason }) => !rowsOf(mark).some((row) => row.reason === reason));
  const doubled = refused.filter(({ mark, job }) => rowsOf(mark).length > attempts(job));
  const asked = new Map(refused.map(({ mark, reason }) => [mark, reason]));
  const strays = kept.filter(({ reason, payload }) =>
    [...asked].every(([mark, expected]) => !payload.includes(mark) || reason !== expected),
  );
  return {
    lost: lost.map(({ mark }) => mark),
    doubled: doubled.map(({ mark }) => mark),
    complaints: strays.map(({ reason, payload }) => `refused for another reason, ${reason}: ${payload.slice(0, 200)}`),
  };
}
