const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** As a shell reports a command that Ctrl-C ended. */
const INTERRUPTED = 130;

/**
 * Aborted by the first signal that asks this process to end. A second one ends it at once: every child ends by itself
 * when this process is gone.
 */
export function stopRequest(process: NodeJS.Process): AbortSignal {
  const request = new AbortController();
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      if (request.signal.aborted) process.exit(INTERRUPTED);
      request.abort();
    });
  }
  return request.signal;
}
