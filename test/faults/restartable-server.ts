/** A server that can be killed or stopped and started again with the same data, on the same ports. */
import { setTimeout as sleep } from 'node:timers/promises';
import { LocalStackError, type RunningServer } from '@meterline/local-stack';

const PORT_PATIENCE_MS = 20_000;
const POLL_MS = 100;

export class RestartableServer<Server extends RunningServer> {
  readonly #launch: (before: Server) => Promise<Server>;
  #running: Server;

  /** @param launch starts the server again, on the same ports */
  constructor(first: Server, launch: (before: Server) => Promise<Server>) {
    this.#running = first;
    this.#launch = launch;
  }

  get running(): Server {
    return this.#running;
  }

  /** Retries, because a client may have taken the port for a moment while the server was down. @throws LocalStackError */
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

  /** Sends SIGKILL and waits for the end. */
  kill(): Promise<void> {
    return this.#running.kill();
  }

  /** Stops the server cleanly and waits for the end. */
  stop(): Promise<void> {
    return this.#running.stop();
  }
}
