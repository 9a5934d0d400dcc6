/**
 * BullMQ's queue, for jobs whose data is JSON already. BullMQ writes the data of a job with JSON.stringify, which would make a string of the
 * text; the rest of the job is written by BullMQ, and the ingest worker reads it as any other.
 */
import { Job, type JobJson, type JobProgress, Queue } from 'bullmq';

/** The data of a job, as Redis is to have it. */
export class JsonText {
  constructor(readonly text: string) {}

  /** What BullMQ writes of it is not used. */
  toJSON(): null {
    return null;
  }
}

class TextJob<Data, Result, Name extends string, Progress extends JobProgress> extends Job<
  Data,
  Result,
  Name,
  Progress
> {
  override asJSON(): JobJson {
    const json = super.asJSON();
    return this.data instanceof JsonText ? { ...json, data: this.data.text } : json;
  }
}

export class TextQueue extends Queue<JsonText> {
  protected override get Job(): typeof Job {
    return TextJob;
  }
}
