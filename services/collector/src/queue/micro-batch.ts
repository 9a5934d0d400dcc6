/**
 * Combines the events of several requests into one job, because a durable write costs Redis about the same for one event as for a thousand.
 * If no write is in progress, a request is written immediately. Otherwise the request waits until that write ends, but at most `holdMs`.
 * The promise of each request resolves or rejects with the write that contains its events.
 */
import { context, trace } from '@opentelemetry/api';

export interface MicroBatcherOptions {
  readonly write: (events: readonly object[]) => Promise<void>;
  readonly holdMs: number;
  /** Maximum number of events in a write. A request with more events gets a write of its own. */
  readonly maxEvents: number;
  readonly maxBytes: number;
}

interface Waiting {
  readonly events: readonly object[];
  readonly context: ReturnType<typeof context.active>;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export class MicroBatcher {
  readonly #options: MicroBatcherOptions;
  #waiting: Waiting[] = [];
  #events = 0;
  #bytes = 0;
  #writing = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: MicroBatcherOptions) {
    this.#options = options;
  }

  /** Resolves when the events are durable. @param bytes the approximate length of the events as JSON @throws the error of the write */
  add(events: readonly object[], bytes: number): Promise<void> {
    const { holdMs, maxBytes, maxEvents } = this.#options;
    if (this.#events + events.length > maxEvents || this.#bytes + bytes > maxBytes) this.#flush();
    return new Promise((resolve, reject) => {
      this.#waiting.push({ events, context: context.active(), resolve, reject });
      this.#events += events.length;
      this.#bytes += bytes;
      if (this.#writing === 0 || holdMs === 0 || this.#events >= maxEvents) this.#flush();
      else this.#timer ??= setTimeout(() => this.#flush(), holdMs).unref();
    });
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const requests = this.#waiting;
    if (requests.length === 0) return;
    this.#waiting = [];
    this.#events = 0;
    this.#bytes = 0;
    this.#writing += 1;
    this.#write(requests)
      .then(
        () => {
          for (const { resolve } of requests) resolve();
        },
        (error: unknown) => {
          for (const { reject } of requests) reject(error);
        },
      )
      .finally(() => {
        this.#writing -= 1;
        if (this.#writing === 0) this.#flush();
      });
  }

  /** Writes requests as one job. A job has only one trace, that of its first traced request. The spans of other requests link to it. */
  #write(requests: readonly Waiting[]): Promise<void> {
    const traced = requests.filter((request) => trace.getSpanContext(request.context) !== undefined);
    const [first, ...others] = traced;
    const span = first && trace.getSpanContext(first.context);
    if (span) for (const other of others) trace.getSpan(other.context)?.addLink({ context: span });
    // `concat` takes 2 µs for 5,000 events, and `flatMap` takes 450 µs.
    const events = Array.of<object>().concat(...requests.map((request) => request.events));
    return context.with(first?.context ?? context.active(), () => this.#options.write(events));
  }
}
