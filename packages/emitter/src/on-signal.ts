/** What a program does before a signal ends it. */

/** Is on the listeners that are made here, also by another copy of this package. */
const OWN = 'meterline';

/**
 * Does the work at the signal, and then lets that end the process, unless the program listens for it as well: then that is for
 * the program to do. Where several are at work the last one lets it.
 * @returns stops listening; to be called when the work is over
 */
export function onSignal(signal: NodeJS.Signals, work: () => Promise<unknown>): () => void {
  let isAlone: boolean | undefined;
  const onIt = async () => {
    // The first time, and before all others: one that listens once is gone when it has been called.
    isAlone ??= process.listeners(signal).every((listener) => OWN in listener);
    await work();
    if (isAlone && process.listenerCount(signal) === 0) process.kill(process.pid, signal);
  };
  const listener = Object.assign(onIt, { [OWN]: true });
  process.prependListener(signal, listener);
  return () => process.off(signal, listener);
}
