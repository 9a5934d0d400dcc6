// Opens the standard streams of a worker now: a file that imports this module, itself or in a library, has left nothing open.
import 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import NodeEnvironment from 'jest-environment-node';

// Returning a heap of a gigabyte takes Node longer than Jest waits for the end of a worker.
process.once('beforeExit', () => process.exit());

/** Handles that close by themselves have this time, which only a file with a leak uses up. */
const CLOSED_WITHIN_MS = 30_000;

/**
 * Jest's environment with two additions. A file fails if it leaves a handle open: a server, a connection, a timer or a process that
 * would keep Node running. And a worker ends when its parent dies, although services that its tests started would keep it alive.
 */
export default class extends NodeEnvironment {
  #openBefore;

  async setup() {
    await super.setup();
    process.once('disconnect', endWithParent);
    this.#openBefore = openHandles();
  }

  async teardown() {
    process.off('disconnect', endWithParent);
    const leaked = await this.#leakedHandles();
    await super.teardown();
    if (leaked.length > 0) {
      throw new Error(`The tests of this file left open: ${leaked.join(', ')}. Close in afterAll what they opened.`);
    }
  }

  async #leakedHandles() {
    const deadline = Date.now() + CLOSED_WITHIN_MS;
    for (;;) {
      const leaked = subtract(openHandles(), this.#openBefore);
      if (leaked.length === 0 || Date.now() > deadline) return leaked;
      await sleep(10, undefined, { ref: false });
    }
  }
}

/** One name for each handle or request that keeps the process running, such as TCPSocketWrap or Timeout. */
function openHandles() {
  return process.getActiveResourcesInfo();
}

/** Without the first occurrence of each name in `others`. */
function subtract(names, others) {
  const left = [...names];
  for (const name of others) {
    const index = left.indexOf(name);
    if (index !== -1) left.splice(index, 1);
  }
  return left;
}

function endWithParent() {
  process.exit(1);
}
