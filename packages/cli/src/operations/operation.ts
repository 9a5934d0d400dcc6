/** What operators' commands have in common: they say what will change, ask, do it, show how far they are, and can be resumed. */
import { type CommandContext, formatCount, say, sayProgress } from '../command.js';
import { CommandError } from '../failure.js';
import type { OutputFlags } from '../flags.js';
import { requireConfirmation } from '../input.js';
import { printResult } from '../output/result.js';

/** How far an operation has come. Called with 0 done before the first step. */
export type OnProgress = (done: number, total: number) => void;

interface Described {
  readonly json: unknown;
  readonly text: string;
  /** The lines of CSV (default: one of `json`). */
  readonly rows?: readonly unknown[];
}

export interface Operation<Result> {
  /** What must be typed before; undefined: nothing is asked, because nothing is lost or it was said with a flag. */
  readonly confirm?: { readonly question: string; readonly answer: string } | undefined;
  /** @param onProgress is called with 0 done before the first step. @param signal ends the work between two steps */
  readonly work: (onProgress: OnProgress, signal: AbortSignal) => Promise<Result>;
  /** What is done, for so many steps. */
  readonly label: (total: number) => string;
  /** Printed, also of what was done before an interruption. */
  readonly describe: (result: Result, wasInterrupted: boolean) => Described;
  /** How to go on after an interruption or a failure; undefined: nothing is changed. */
  readonly resume: string | undefined;
}

/** @throws CommandError when it is not confirmed, or interrupted */
export async function operate<Result>(
  context: CommandContext,
  flags: OutputFlags,
  { confirm, work, label, describe, resume }: Operation<Result>,
): Promise<Result> {
  if (confirm) await requireConfirmation(context, confirm.question, confirm.answer);
  const signal = context.interruption();
  let isUnderWay = false;
  let tenths = 0;
  const onProgress: OnProgress = (done, total) => {
    // The first step may fail when it has written already.
    isUnderWay ||= total > 0;
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
    const canGoOn = isUnderWay && resume !== undefined && !(error instanceof CommandError);
    if (canGoOn) say(context, `Stopped on the way. ${resume}`);
    throw error;
  }
  const described = describe(result, signal.aborted);
  printResult(context, flags, described.json, described.text, described.rows);
  if (!signal.aborted) return result;
  throw new CommandError(resume === undefined ? 'interrupted; nothing was changed' : `interrupted. ${resume}`);
}
