/**
 * BullMQ's queue, for jobs whose data is JSON already. BullMQ writes the data of a job with JSON.stringify; all else of the job is written by
 * BullMQ, and the ingest worker reads it as any other. Bytes instead of a text, because ioredis counts the bytes of a text twice, and
 * then makes bytes of it: 3 ms of a job of 1.4 MB.
 */
import { Job, type JobJson, type JobProgress, Queue } from 'bullmq';

/** The data of a job, as Redis is to have it. */
export class JsonBytes {
  constructor(readonly bytes: Buffer) {}

  /** What BullMQ writes of it is not used. */
  toJSON(): null {
    return null;
  }
}

class JsonJob<Data, Result, Name extends string, Progress extends JobProgress> extends Job<
  Data,
  Result,
  Name,
  Progress
> {
  /** BullMQ gives the data to ioredis as it is, which writes bytes as it writes a text. */
  override asJSON(): JobJson {
    const json = super.asJSON();
    return this.data instanceof JsonBytes ? Object.assign(json, { data: this.data.bytes }) : json;
  }
}

export class JsonQueue extends Queue<JsonBytes> {
  protected override get Job(): typeof Job {
    return JsonJob;
  }
}
