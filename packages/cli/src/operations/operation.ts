/** Runs long operations of operators: confirmation, progress, interruption and result. */
import { type CommandContext, formatCount, say, sayProgress } from '../command.js';
import { CommandError } from '../failure.js';
import type { OutputFlags } from '../flags.js';
import { requireConfirmation } from '../input.js';
import { printResult } from '../output/result.js';

/** Reports progress. The first call comes before the first step, with `done` 0. */
export type OnProgress = (done: number, total: number) => void;

interface Described {
  readonly json: unknown;
  readonly text: string;
  /** Rows for CSV (default: one row with the values of `json`). */
  readonly rows?: readonly unknown[];
}

export interface Operation<Result> {
  /** The confirmation to require, or undefined if the operation deletes nothing or a flag has confirmed it. */
  readonly confirm?: { readonly question: string; readonly reply: string } | undefined;
  readonly work: (onProgress: OnProgress, signal: AbortSignal) => Promise<Result>;
  readonly label: (total: number) => string;
  readonly describe: (result: Result, wasInterrupted: boolean) => Described;
  /** Explains how to continue after an interruption or failure, or undefined for operations that change nothing. */
  readonly resume: string | undefined;
}

/** Runs an operation and prints its result. @throws CommandError if the operation is not confirmed, or interrupted */
export async function operate<Result>(
  context: CommandContext,
  flags: OutputFlags,
  { confirm, work, label, describe, resume }: Operation<Result>,
): Promise<Result> {
  if (confirm) await requireConfirmation(context, confirm.question, confirm.reply);
  const signal = context.interruption();
  let hasStarted = false;
  let tenths = 0;
  const onProgress: OnProgress = (done, total) => {
    // Count the operation as started before its first step is done, because that step may write and then fail.
    hasStarted ||= total > 0;
    const before = tenths;
    tenths = Math.floor((10 * done) / total);
    if (done === 0) return sayProgress(context, `${label(total)} …`, true);
    const percent = Math.min(100, Math.floor((100 * done) / total));
    sayProgress(context, `${label(total)}: ${formatCount(done)} done (${percent}%)`, tenths > before && done < total);
  };
  let result: Result;
  try {
    result = await work(onProgress, signal).finally(() => sayProgress(context, ''));
  } catch (error) {
    const isResumable = hasStarted && resume !== undefined && !(error instanceof CommandError);
    if (isResumable) say(context, `Stopped before the end. ${resume}`);
    throw error;
  }
  const described = describe(result, signal.aborted);
  printResult(context, flags, described.json, described.text, described.rows);
  if (!signal.aborted) return result;
  throw new CommandError(resume === undefined ? 'interrupted; nothing was changed' : `interrupted. ${resume}`);
}
