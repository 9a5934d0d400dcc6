/** What operators' commands have in common: they say what will change, ask, do it, show how far they are, and can be resumed. */
import { SingleBar } from 'cli-progress';
import { type CommandContext, formatCount, printResult, say } from '../command.js';
import { CommandError } from '../failure.js';
import { requireAnswer } from '../input.js';

/** How far an operation has come. Called with 0 done before the first step. */
export type OnProgress = (done: number, total: number) => void;

export interface Operation<Result> {
  /** What must be typed before; undefined: nothing is asked, because nothing is lost or it was said with a flag. */
  readonly confirm?: { readonly question: string; readonly answer: string } | undefined;
  /** @param onProgress is called with 0 done before the first step. @param signal ends the work between two steps */
  readonly work: (onProgress: OnProgress, signal: AbortSignal) => Promise<Result>;
  /** What is done, for so many steps. */
  readonly label: (total: number) => string;
  /** Printed, also of what was done before an interruption. */
  readonly describe: (result: Result, wasInterrupted: boolean) => { readonly json: unknown; readonly text: string };
  /** How to go on after an interruption or a failure; undefined: nothing is changed. */
  readonly resume: string | undefined;
}

/** @throws CommandError when it is not confirmed, or interrupted */
export async function operate<Result>(
  context: CommandContext,
  { json }: { readonly json?: boolean },
  { confirm, work, label, describe, resume }: Operation<Result>,
): Promise<Result> {
  if (confirm) await requireAnswer(context, confirm.question, confirm.answer);
  const signal = context.interruption();
  let shown: Shown | undefined;
  let isUnderWay = false;
  const onProgress: OnProgress = (done, total) => {
    // The first step may fail when it has written already.
    isUnderWay ||= total > 0;
    if (done > 0) return shown?.update(done);
    shown?.stop();
    shown = (context.stderr.isTTY ? bar : lines)(context, label(total), total);
  };
  let result: Result;
  try {
    result = await work(onProgress, signal).finally(() => shown?.stop());
  } catch (error) {
    const canGoOn = isUnderWay && resume !== undefined && !(error instanceof CommandError);
    if (canGoOn) say(context, `Stopped on the way. ${resume}`);
    throw error;
  }
  const described = describe(result, signal.aborted);
  printResult(context, json, described.json, described.text);
  if (!signal.aborted) return result;
  throw new CommandError(resume === undefined ? 'interrupted; nothing was changed' : `interrupted. ${resume}`);
}

interface Shown {
  update(done: number): void;
  stop(): void;
}

function bar({ stderr: stream }: Pick<CommandContext, 'stderr'>, label: string, total: number): Shown {
  const format = `${label} {bar} {percentage}% {duration_formatted}`;
  const shown = new SingleBar({ format, stream, barCompleteChar: '█', barIncompleteChar: '░', hideCursor: true });
  shown.start(total, 0);
  return shown;
}

/** A line for every tenth of the way. */
function lines(context: Pick<CommandContext, 'stderr'>, label: string, total: number): Shown {
  say(context, `${label} …`);
  let shownTenths = 0;
  const update = (done: number) => {
    const tenths = Math.floor((10 * done) / total);
    if (tenths <= shownTenths || done >= total) return;
    shownTenths = tenths;
    say(context, `${label}: ${formatCount(done)} done`);
  };
  return { update, stop: () => undefined };
}
