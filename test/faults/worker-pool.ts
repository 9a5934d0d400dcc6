/** The ingest workers of a round. A fault restarts them itself, as a supervisor would. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type ServiceEnvironment, type ServiceProcess, startIngest } from '../services.js';

const STARTED_WITHIN_MS = 120_000;
const PAUSE_MS = 500;

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

  /** Starts more workers, all at the same time. @param env added to that of the round @returns those that it started */
  async start(count: number, env: ServiceEnvironment = {}): Promise<ServiceProcess[]> {
    const starting = Array.from({ length: count }, () => supervised(() => startIngest({ ...this.#env(), ...env })));
    const ended = await Promise.allSettled(starting);
    const started = ended.flatMap((worker) => (worker.status === 'fulfilled' ? [worker.value] : []));
    this.#workers.push(...started);
    for (const worker of ended) if (worker.status === 'rejected') throw worker.reason;
    return started;
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

/** A worker ends at its start while a server is away, which another fault may see to; a supervisor starts it again. */
async function supervised(start: () => Promise<ServiceProcess>): Promise<ServiceProcess> {
  const patienceEnds = Date.now() + STARTED_WITHIN_MS;
  for (;;) {
    try {
      return await start();
    } catch (error) {
      if (Date.now() > patienceEnds) throw error;
      await sleep(PAUSE_MS);
    }
  }
}
