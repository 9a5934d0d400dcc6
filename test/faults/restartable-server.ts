/** A server that can be killed or stopped and started again with the same data, on the same ports. */
import { setTimeout as sleep } from 'node:timers/promises';
import { LocalStackError, type RunningServer } from '@meterline/local-stack';

const PORT_PATIENCE_MS = 20_000;
const POLL_MS = 100;

export class RestartableServer<Server extends RunningServer> {
  readonly #launch: (before: Server) => Promise<Server>;
  #running: Server;

  /** @param launch starts it again, on the ports that it had */
  constructor(first: Server, launch: (before: Server) => Promise<Server>) {
    this.#running = first;
    this.#launch = launch;
  }

  get running(): Server {
    return this.#running;
  }

  /** While it was down its port may have become a client's for a moment. @throws LocalStackError */
  async start(): Promise<void> {
    const patienceEnds = Date.now() + PORT_PATIENCE_MS;
    for (;;) {
      try {
        this.#running = await this.#launch(this.#running);
        return;
      } catch (error) {
        const isTaken = error instanceof LocalStackError && error.code === 'port_in_use';
        if (!isTaken || Date.now() > patienceEnds) throw error;
        await sleep(POLL_MS);
      }
    }
  }

  /** `kill -9`, and waits until it is gone. */
  kill(): Promise<void> {
    return this.#running.kill();
  }

  /** Asks it to end in good order, and waits until it is gone. */
  stop(): Promise<void> {
    return this.#running.stop();
  }
}
