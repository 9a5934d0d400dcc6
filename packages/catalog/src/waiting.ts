/**
 * Waits for the work until the signal is aborted. The work then continues, but its result is ignored.
 *
 * Reading a response body requires this function, too. In Node 20, the text of a compressed response stays pending forever if its signal is
 * aborted while the last bytes are being decompressed. This happens if a process is suspended for longer than its timeout and then resumes.
 * @throws the work's error, or the signal's reason
 */
export function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    work.finally(() => signal.removeEventListener('abort', onAbort)).then(resolve, reject);
  });
}

/**
 * Returns how long to wait before the next attempt, in milliseconds. The back-off doubles with each failure up to `longestMs`. Jitter then picks
 * a time between half of the back-off and all of it, so that clients that failed together do not retry together.
 * @param failures the number of earlier failures
 * @param random a number from 0 to 1; 1 means no jitter
 */
export function backOffMs(
  failures: number,
  { firstMs, longestMs }: { readonly firstMs: number; readonly longestMs: number },
  random = Math.random(),
): number {
  return Math.round(Math.min(longestMs, firstMs * 2 ** failures) * (0.5 + random / 2));
}
