/** Lets a service watch its statements: how long each takes and how it ends, by a name that never changes. */
import { ClickHouseError } from '@clickhouse/client';

/** `refused`: the server answered with an error. `unanswered`: no answer came, or not in time, or not to its end. */
export const STATEMENT_OUTCOMES = ['ok', 'refused', 'unanswered'] as const;
export type StatementOutcome = (typeof STATEMENT_OUTCOMES)[number];

/** Called once, when the statement has ended. */
export type StatementEnd = (outcome: StatementOutcome, error?: unknown) => void;

/** Called when a statement begins. Must not throw: it watches, and takes no part. */
export type StatementObserver = (name: string) => StatementEnd;

/** Whatever runs a statement on a warehouse passes through here. */
export async function observed<T>(
  { observe }: { readonly observe?: StatementObserver },
  name: string,
  run: () => Promise<T>,
): Promise<T> {
  const end = observe?.(name);
  try {
    const answer = await run();
    end?.('ok');
    return answer;
  } catch (error) {
    end?.(error instanceof ClickHouseError ? 'refused' : 'unanswered', error);
    throw error;
  }
}
