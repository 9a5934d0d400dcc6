/** Takes and acknowledges many jobs of a queue with one command, if they are plain: see plain-jobs-scripts.ts. */
import { ACKNOWLEDGE, TAKE } from './plain-jobs-scripts.js';
import type { QueueConnection, RunScript } from './queue-connection.js';
import { KEPT_COMPLETED_JOBS } from './raw-data-worker.js';

/** Redis answers nobody during a script; so many jobs take two to four milliseconds. */
export const MOST_AT_ONCE = 256;
/** Of each job. */
const ANSWERS = 4;

/** Taken, and locked with its token. */
export interface PlainJob {
  readonly id: string;
  readonly token: string;
  /** When the queue took the job, as its producer says. */
  readonly timestamp: number;
  /** Of its data. */
  readonly bytes: number;
  /** Undefined when it has to be read by itself. */
  readonly data: Buffer | undefined;
}

export interface Taken {
  readonly jobs: readonly PlainJob[];
  /** How many of the next jobs are for BullMQ, as far as is known. */
  readonly others: number;
}

export interface PlainJobsOptions {
  readonly connection: QueueConnection;
  /** Of BullMQ, by name. */
  readonly keyOf: (name: string) => string;
  /** Another each time. */
  readonly newToken: () => string;
  /** How long a lock lasts that is not renewed. */
  readonly lockMs: number;
}

export class PlainJobs {
  readonly #options: PlainJobsOptions;
  readonly #take: RunScript;
  readonly #acknowledge: RunScript;
  /** What was asked and not answered: Redis may have given jobs. Who asks the same again is given them. */
  #asked: { readonly token: string; readonly most: number } | undefined;

  constructor(options: PlainJobsOptions) {
    this.#options = options;
    this.#take = options.connection.script('takePlainJobs', TAKE);
    this.#acknowledge = options.connection.script('acknowledgePlainJobs', ACKNOWLEDGE);
  }

  /** @throws when Redis does not answer, or with an error */
  async take(most: number): Promise<Taken> {
    const { keyOf, newToken, lockMs } = this.#options;
    this.#asked ??= { token: newToken(), most };
    const { token } = this.#asked;
    const keys = ['wait', 'active', 'events', 'delayed', 'meta', 'marker'].map(keyOf);
    const args = [keyOf(''), Date.now(), token, lockMs, this.#asked.most];
    const [others, ...fields] = listOf(await this.#take(keys, args));
    this.#asked = undefined;
    const jobs: PlainJob[] = [];
    for (let at = 0; at < fields.length; at += ANSWERS) {
      const [id, timestamp, bytes, data] = [fields[at], fields[at + 1], Number(fields[at + 2]), fields[at + 3]];
      jobs.push({
        id: String(id),
        token,
        timestamp: Number.parseInt(String(timestamp), 10),
        bytes,
        data: data instanceof Buffer && data.length === bytes ? data : undefined,
      });
    }
    return { jobs, others: Number(others) };
  }

  /**
   * @param jobs at most {@link MOST_AT_ONCE}
   * @param kept how many of them, the last, stay readable for a while
   * @returns those that are left to BullMQ, and have not changed
   * @throws as {@link take} does
   */
  async acknowledge(jobs: readonly PlainJob[], kept: number): Promise<readonly PlainJob[]> {
    const { keyOf } = this.#options;
    const keys = ['active', 'stalled', 'events', 'meta', 'completed', 'wait', 'prioritized'].map(keyOf);
    const args = jobs.flatMap(({ id, token }) => [id, token]);
    const left = await this.#acknowledge(keys, [keyOf(''), Date.now(), KEPT_COMPLETED_JOBS, kept, ...args]);
    const ids = new Set(listOf(left).map(String));
    return ids.size === 0 ? [] : jobs.filter(({ id }) => ids.has(id));
  }
}

function listOf(answer: unknown): unknown[] {
  if (!Array.isArray(answer)) throw new Error('a script did not answer with a list');
  return answer;
}
