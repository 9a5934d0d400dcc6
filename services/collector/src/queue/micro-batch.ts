/**
 * Puts the events of several requests into one job, which is written at once: a durable write costs Redis the same for one event as for a
 * thousand. A request that comes while nothing is being written is written at once; others wait until that
 * write is over, or for as long as they may be held, whichever is sooner. Each learns of its own write's outcome.
 */
import { context, trace } from '@opentelemetry/api';

export interface MicroBatcherOptions {
  /** Makes events durable. */
  readonly write: (events: readonly object[]) => Promise<void>;
  readonly holdMs: number;
  /** The most events of one write. A request that has more alone is written alone. */
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

  /**
   * Resolves when the events are durable.
   * @param bytes the length of their text, about
   * @throws the error of the write
   */
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

  /** The job belongs to the trace of the first request that has one; the spans of the others link to that. */
  #write(requests: readonly Waiting[]): Promise<void> {
    const traced = requests.filter((request) => trace.getSpanContext(request.context) !== undefined);
    const [first, ...others] = traced;
    const span = first && trace.getSpanContext(first.context);
    if (span) for (const other of others) trace.getSpan(other.context)?.addLink({ context: span });
    const events = requests.flatMap((request) => request.events);
    return context.with(first?.context ?? context.active(), () => this.#options.write(events));
  }
}
