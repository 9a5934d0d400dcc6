/** Runs a function to warm up and then measures several runs. */

const RUNS = 5;

/** @param warmUpMs how long to run it unmeasured; at least once */
export async function measure(run: () => Promise<number>, runs = RUNS, warmUpMs = 0): Promise<number[]> {
  const started = performance.now();
  do await run();
  while (performance.now() - started < warmUpMs);
  const measured: number[] = [];
  for (let index = 0; index < runs; index += 1) measured.push(await run());
  return measured;
}

/** Code of a service that has just started is not compiled yet; a dashboard uses a service that has run for days. */
export const WARM_UP_MS = 3_000;

/**
 * Measures two functions alternately, so that other work on the machine affects both equally.
 * @param warmUpMs how long to run both unmeasured; each at least once
 * @returns the runs of each
 */
export async function measureInTurn(
  first: () => Promise<number>,
  second: () => Promise<number>,
  { runs = RUNS, warmUpMs = 0 } = {},
): Promise<readonly [number[], number[]]> {
  const started = performance.now();
  do {
    await first();
    await second();
  } while (performance.now() - started < warmUpMs);
  const measured: readonly [number[], number[]] = [[], []];
  for (let index = 0; index < runs; index += 1) {
    measured[0].push(await first());
    measured[1].push(await second());
  }
  return measured;
}
