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
