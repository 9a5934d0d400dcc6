/**
 * Waits for the work until the signal is aborted. The work continues, but its result is then ignored.
 *
 * Reading a response body needs this too. In Node 20 the text of a compressed response stays pending forever if its signal is aborted while
 * the last bytes are being decompressed. That happens to a process that is suspended longer than its timeout and then resumes.
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
 * Returns the back-off after a failure in milliseconds. It doubles with each failure up to `longestMs`. Jitter picks a value between half
 * of the back-off and all of it, so that clients that failed together do not retry together.
 * @param failures number of earlier failures
 * @param random 0 to 1; 1 for no jitter
 */
export function backOffMs(
  failures: number,
  { firstMs, longestMs }: { readonly firstMs: number; readonly longestMs: number },
  random = Math.random(),
): number {
  return Math.round(Math.min(longestMs, firstMs * 2 ** failures) * (0.5 + random / 2));
}
