/** The ingest workers of a round. A fault restarts them itself, as a supervisor would. */
import { type ServiceEnvironment, type ServiceProcess, startIngest } from '../services.js';

export class WorkerPool {
  readonly #env: () => ServiceEnvironment;
  #workers: ServiceProcess[] = [];

  /** @param env called for each worker */
  constructor(env: () => ServiceEnvironment) {
    this.#env = env;
  }

  get running(): readonly ServiceProcess[] {
    return this.#workers;
  }

  /** Starts more workers, all at the same time. */
  async start(count: number): Promise<void> {
    const started = await Promise.allSettled(Array.from({ length: count }, () => startIngest(this.#env())));
    for (const worker of started) if (worker.status === 'fulfilled') this.#workers.push(worker.value);
    for (const worker of started) if (worker.status === 'rejected') throw worker.reason;
  }

  /** Sends SIGKILL to all of them at the same moment. */
  async kill(victims: readonly ServiceProcess[]): Promise<void> {
    this.#workers = this.#workers.filter((worker) => !victims.includes(worker));
    await Promise.all(victims.map((worker) => worker.kill()));
  }

  /** Sends SIGTERM to all. @returns their exit codes */
  async stop(): Promise<(number | null)[]> {
    const stopped = this.#workers;
    const codes = await Promise.all(stopped.map((worker) => worker.stop()));
    this.#workers = [];
    return codes;
  }
}
