/** A job that is too large to be read: all of its data is kept, and it is refused. */
import { createHash } from 'node:crypto';
import { formatOversizedPayload, type Rejection } from '@meterline/catalog';
import type { PayloadPart } from '@meterline/warehouse';
import { type Intake, refusedJob } from './intake.js';

/** Of one row. */
export const PART_BYTES = 4 * 1024 * 1024;
/** Of the data that is kept in the refusal itself. */
const HEAD_BYTES = 64 * 1024;

export interface OversizedJob {
  readonly job: Intake['job'];
  /** Its data from the beginning, in pieces of any size, as often as it is asked for. */
  readonly read: () => AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
}

/**
 * Makes the data durable, a part at a time, and returns the refusal that names it. The data is read twice, because each part
 * is kept under the hash of all of them.
 *
 * Crash order: all parts durable, then the refusal, then the acknowledgement. A crash before the refusal leaves parts that
 * the redelivery writes again under the same keys.
 */
export async function keepOversized(
  { job, read }: OversizedJob,
  rejection: Rejection,
  keepPart: (part: PayloadPart) => Promise<void>,
): Promise<Intake> {
  const hash = createHash('sha256');
  let head: Uint8Array | undefined;
  let bytes = 0;
  for await (const piece of read()) {
    head ??= piece.slice(0, HEAD_BYTES);
    hash.update(piece);
    bytes += piece.length;
  }
  const sha256 = hash.digest('hex');

  let part = 0;
  for await (const piece of read()) {
    for (let from = 0; from < piece.length; from += PART_BYTES) {
      const content = piece.subarray(from, from + PART_BYTES);
      await keepPart({ receivedAt: job.receivedAt, jobId: job.id, sha256, part, content });
      part += 1;
    }
  }
  const payload = formatOversizedPayload({ head: new TextDecoder().decode(head), bytes, sha256 });
  return refusedJob(job, payload, rejection);
}
