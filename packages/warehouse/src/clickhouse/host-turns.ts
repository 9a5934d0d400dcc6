/**
 * Which of several hosts a request goes to: each in its turn, but past one that is away. One that refuses connections is noticed
 * at once. One that takes them and is silent, as a process that hangs, is asked for a sign of life when a request has
 * had no answer for a while; without one it is left, and gets requests again when it has given one.
 */
import { isNoConnection } from './errors.js';
import type { Host } from './hosts.js';

export interface Patience {
  /** A request that has had no answer for so long is a reason to ask its host whether it is there. */
  readonly suspectMs: number;
  /** How long a host may take to say so. */
  readonly signOfLifeMs: number;
  /** How much later a host that was silent is asked again. */
  readonly askAgainMs: number;
}

const PATIENCE: Patience = { suspectMs: 2_000, signOfLifeMs: 3_000, askAgainMs: 5_000 };

/** What undici ends a request with when its signal is aborted. */
class HostSilent extends Error {
  override readonly name = 'HostSilent';
}

export class HostTurns {
  readonly #hosts: readonly Host[];
  readonly #patience: Patience;
  /** The host whose turn it is. */
  #next = 0;
  /** Those that are silent, and when they were last asked. */
  readonly #silentSince = new Map<Host, number>();
  readonly #asking = new Map<Host, Promise<boolean>>();

  constructor(hosts: readonly Host[], patience = PATIENCE) {
    this.#hosts = hosts;
    this.#patience = patience;
  }

  /**
   * @param send is called with one host after the other, until one is there
   * @param mayLeave whether a request that a host has perhaps seen may go to another; then its signal ends it
   */
  async send<T>(send: (host: Host, left: AbortSignal) => Promise<T>, mayLeave: boolean): Promise<T> {
    const inTurn = this.#inTurn();
    let failure: unknown;
    for (const [index, host] of inTurn.entries()) {
      const isLast = index === inTurn.length - 1;
      try {
        return await this.#sendTo(host, send, mayLeave && !isLast);
      } catch (error) {
        // One that cannot be connected to has seen nothing of the request.
        if (!isNoConnection(error) && !(error instanceof HostSilent)) throw error;
        failure = error;
      }
    }
    throw failure;
  }

  async #sendTo<T>(host: Host, send: (host: Host, left: AbortSignal) => Promise<T>, mayLeave: boolean): Promise<T> {
    const leaving = new AbortController();
    const leaveIfSilent = async () => {
      if (!(await this.#isThere(host))) leaving.abort(new HostSilent('a host of ClickHouse is silent'));
    };
    const watch = mayLeave ? setInterval(() => void leaveIfSilent(), this.#patience.suspectMs) : undefined;
    try {
      return await send(host, leaving.signal);
    } catch (error) {
      leaving.signal.throwIfAborted();
      throw error;
    } finally {
      clearInterval(watch);
    }
  }

  /** All hosts, those that are silent last. */
  #inTurn(): Host[] {
    const first = this.#next;
    this.#next = (first + 1) % this.#hosts.length;
    const inTurn = [...this.#hosts.slice(first), ...this.#hosts.slice(0, first)];
    if (this.#silentSince.size === 0) return inTurn;
    for (const [host, askedAt] of this.#silentSince) {
      if (performance.now() - askedAt >= this.#patience.askAgainMs) void this.#isThere(host);
    }
    return inTurn.sort((a, b) => Number(this.#silentSince.has(a)) - Number(this.#silentSince.has(b)));
  }

  /** Asks once for all who want to know meanwhile. */
  #isThere(host: Host): Promise<boolean> {
    const known = this.#asking.get(host);
    if (known) return known;
    const asking = givesSignOfLife(host, this.#patience.signOfLifeMs).then((isThere) => {
      this.#asking.delete(host);
      if (isThere) this.#silentSince.delete(host);
      else this.#silentSince.set(host, performance.now());
      return isThere;
    });
    this.#asking.set(host, asking);
    return asking;
  }
}

/** Any answer will do. */
async function givesSignOfLife({ pings }: Host, withinMs: number): Promise<boolean> {
  try {
    const { body } = await pings.request({ method: 'GET', path: '/ping', signal: AbortSignal.timeout(withinMs) });
    await body.dump();
    return true;
  } catch {
    return false;
  }
}
