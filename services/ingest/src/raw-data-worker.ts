/** BullMQ's worker, with jobs as producers wrote them: neither their data nor their options are trusted. */
import type { EpochMs } from '@meterline/catalog';
import { type Job, type JobJson, Worker } from 'bullmq';
import type { PlainJob } from './plain-jobs.js';
import { type JobNote, readNote } from './queue-connection.js';

/** Acknowledged jobs that stay readable in Redis, with their data, if it is not larger than that of most jobs. */
export const KEPT_COMPLETED_JOBS = 20;
const LARGEST_KEPT_BYTES = 4 * 1024 * 1024;
/** A later time does not fit its column. */
const LATEST_RECEIPT: EpochMs = Date.UTC(2200, 0, 1);

/** The text that Redis holds; as bytes where it came with others. Empty when it has to be read by itself. */
export type JobData = string | Buffer;

/** Leaves the data of a job as Redis holds it: `Pricer` reads it once, and it need not be valid JSON. */
export class RawDataWorker extends Worker<JobData, void> {
  protected override createJob(json: JobJson, jobId: string): Job<JobData, void> {
    const job = super.createJob({ ...json, data: '""' }, jobId);
    // BullMQ reads an empty text as an empty object, and an empty buffer as itself.
    job.data = json.data.length === 0 ? '{}' : json.data;
    // A producer's options must not count here: keeping all completed jobs, or the largest, would fill Redis,
    const kept = readNote(json.progress).bytes <= LARGEST_KEPT_BYTES ? KEPT_COMPLETED_JOBS : 0;
    job.opts.removeOnComplete = { count: kept };
    // and dropping failed ones would lose events.
    job.opts.removeOnFail = false;
    return job;
  }

  /** As BullMQ would have it. */
  protected plainJob({ id, token, timestamp, bytes, data }: PlainJob): Job<JobData, void> {
    const progress: JobNote = { bytes, unreadable: [] };
    const unknown = { name: '', data: '', opts: {}, failedReason: '', returnvalue: 'null' };
    const counters = { attemptsStarted: 1, attemptsMade: 0, stalledCounter: 0 };
    const job = this.createJob({ id, timestamp, progress, ...unknown, ...counters }, id);
    job.data = data ?? '';
    job.token = token;
    return job;
  }
}

/** When the queue took the job, by its producer's clock. A producer may write anything there: 0 if it cannot be right. */
export function receivedAt({ timestamp }: Pick<Job, 'timestamp'>): EpochMs {
  return timestamp >= 0 && timestamp <= LATEST_RECEIPT ? timestamp : 0;
}

export function bytesOf(data: JobData): Buffer {
  return typeof data === 'string' ? Buffer.from(data) : data;
}
