/** What several processes take for each event, in microseconds, over the runs of a bench. */
import { processorMs } from '../harness/processes.js';
import { type Figure, medianOf } from './figure.js';

export class ProcessorTimes {
  readonly #pids: Readonly<Record<string, number>>;
  readonly #runs = new Map<string, number[]>();

  /** @param pids by what a report calls the process */
  constructor(pids: Readonly<Record<string, number>>) {
    this.#pids = pids;
  }

  /** Does the work, in which so many events are processed. */
  async of<T>(events: number, work: () => Promise<T>): Promise<T> {
    const before = new Map(Object.entries(this.#pids).map(([name, pid]) => [name, processorMs(pid)]));
    const result = await work();
    for (const [name, pid] of Object.entries(this.#pids)) {
      const [from, to] = [before.get(name), processorMs(pid)];
      if (from === undefined || to === undefined) continue;
      this.#runs.set(name, [...(this.#runs.get(name) ?? []), ((to - from) * 1000) / events]);
    }
    return result;
  }

  /** A figure for each process. The first run is the warm-up. */
  figures(of: string): Figure[] {
    return [...this.#runs].map(([name, [, ...runs]]) => medianOf(`processor time of ${name}, ${of}`, 'µs', runs));
  }
}
