/** The worker's side of the queue: BullMQ's own worker with the data of jobs as producers wrote it. */
import { type Job, type JobJson, Worker } from 'bullmq';

/** Acknowledged jobs that stay readable in Redis, if their data is not much larger than that of most jobs. */
const KEPT_COMPLETED_JOBS = 20;
const LARGEST_KEPT_LENGTH = 4 * 1024 * 1024;

/** Leaves the data of a job as the text that Redis holds: it is parsed once, where it is checked, and need not be valid JSON. */
export class RawJobWorker extends Worker<string, void> {
  protected override createJob(json: JobJson, jobId: string): Job<string, void> {
    // A schedule would send the same event for ever, which counts once; and no child of a flow makes an event invalid.
    const { data, repeatJobKey: _, deferredFailure: _failure, ...rest } = json;
    const job = super.createJob({ ...rest, data: '""' }, jobId);
    job.data = data;
    // A producer's options must not count here: keeping all completed jobs would fill Redis, and dropping failed ones would lose events.
    job.opts.removeOnComplete = { count: data.length <= LARGEST_KEPT_LENGTH ? KEPT_COMPLETED_JOBS : 0 };
    job.opts.removeOnFail = false;
    return job;
  }
}
