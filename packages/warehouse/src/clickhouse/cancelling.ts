/**
 * Ends a statement in the server when nobody waits for it any more. Closing its connection would end a SELECT some time
 * later and an INSERT … SELECT never, and would not tell when. So the connection stays open, the server is asked to kill the
 * statement until its connection says that it has ended. So the number of statements under way can be relied on.
 */
import { setTimeout as delay } from 'node:timers/promises';

/** A statement that has just been sent may not be in the server's list yet, so it may take more than one. */
const BETWEEN_KILLS_MS = 100;
/** Then the connection is closed: a proxy may have brought the kill to another server, and a SELECT ends then, too. */
const HANG_UP_MS = 3_000;

export interface Cancellable {
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
  /** Asks the server to end the statement; nothing happens if it is not running. */
  readonly kill: () => Promise<unknown>;
  /** Closes the statement's connection. */
  readonly hangUp: () => void;
}

/**
 * Resolves or rejects when the statement has ended, and not before.
 * @throws the signal's reason once it is aborted, whatever the statement ended with
 */
export async function endedByAbort<T>(statement: Promise<T>, { signal, kill, hangUp }: Cancellable): Promise<T> {
  const ended = new AbortController();
  const onAbort = () => void killUntilEnded(ended.signal, kill, hangUp);
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    const answer = await statement;
    signal.throwIfAborted();
    return answer;
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
    ended.abort();
  }
}

async function killUntilEnded(ended: AbortSignal, kill: () => Promise<unknown>, hangUp: () => void): Promise<void> {
  const deadline = setTimeout(hangUp, HANG_UP_MS);
  while (!ended.aborted) {
    // A server that cannot be asked is left alone: the deadline or the statement's own limit of time ends it.
    await kill().catch(() => undefined);
    await delay(BETWEEN_KILLS_MS, undefined, { signal: ended }).catch(() => undefined);
  }
  clearTimeout(deadline);
}
