/**
 * Resolves with the first reason to stop: SIGTERM, SIGINT, or the end of the parent process that holds our IPC channel
 * (the local stack starts us so, and nothing it starts may outlive it).
 */
export function shutdownSignal(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve(signal));
    process.once('disconnect', () => resolve('disconnect'));
    // Listening alone would keep the process running after everything else has ended.
    process.channel?.unref();
  });
}
