/** The processor time of several processes, in microseconds per event, over the runs of a bench. */
import { type Figure, median } from './figure.js';
import { processorMs } from './machine.js';

export class ProcessorTimes {
  readonly #pids: Readonly<Record<string, number>>;
  readonly #runs = new Map<string, number[]>();

  /** @param pids by what a report calls the process */
  constructor(pids: Readonly<Record<string, number>>) {
    this.#pids = pids;
  }

  /** @returns ends the run, in which so many events were processed */
  start(events: number): () => void {
    const before = new Map(Object.entries(this.#pids).map(([name, pid]) => [name, processorMs(pid)]));
    return () => {
      for (const [name, pid] of Object.entries(this.#pids)) {
        const [from, to] = [before.get(name), processorMs(pid)];
        if (from === undefined || to === undefined) continue;
        this.#runs.set(name, [...(this.#runs.get(name) ?? []), ((to - from) * 1000) / events]);
      }
    };
  }

  /** A figure for each process; none where the system does not report times. The first run is the warm-up. */
  figures(of: string): Figure[] {
    return [...this.#runs].map(([name, [, ...runs]]) => ({
      ...{ what: `processor time of ${name}, ${of}`, value: median(runs), unit: 'µs', runs },
    }));
  }
}
