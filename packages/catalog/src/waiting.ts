/**
 * Waits for the work until the signal is aborted. The work itself goes on; its outcome is then ignored.
 *
 * A response needs it too: Node 20 leaves the text of one that is compressed pending for ever when its signal is aborted while the last
 * bytes are unpacked, as it is when a process goes on after it was stopped for longer than its timeout.
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

/** With these statuses a service, or a proxy in front of it, has failed or is away: a request that may be carried out twice is sent again. */
export function isAwayStatus(status: number): boolean {
  return [408, 500, 502, 503, 504].includes(status);
}

/**
 * Milliseconds to wait after a failure: twice as long after each, up to the longest. The wait is between half of that and all of it, so that
 * not all who failed at one moment come back at one moment.
 * @param failures before this one
 * @param random 0 to 1; 1 for no jitter
 */
export function backOffMs(
  failures: number,
  { firstMs, longestMs }: { readonly firstMs: number; readonly longestMs: number },
  random = Math.random(),
): number {
  return Math.round(Math.min(longestMs, firstMs * 2 ** failures) * (0.5 + random / 2));
}
