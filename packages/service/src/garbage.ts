import { setFlagsFromString } from 'node:v8';

/**
 * For a service through which much memory outside the heap passes, such as bodies, jobs and blocks. Node counts it as if the heap had grown,
 * and would look through a heap of 25 MB for each 20 MB of jobs, several times a second. From now on the heap may grow to five
 * times of what is in use, or to `--max-old-space-size`, before all of it is collected.
 */
export function collectGarbageLate(): void {
  setFlagsFromString('--heap-growing-percent=400');
}
