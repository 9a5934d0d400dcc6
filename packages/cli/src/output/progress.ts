import { SingleBar } from 'cli-progress';
import { type CommandContext, formatCount, say } from '../command.js';

/** Shows how far a long step has come: a bar on a terminal, a line for every tenth of the way elsewhere. */
export interface Progress {
  update(done: number): void;
  stop(): void;
}

/**
 * The progress of an operation, which says by itself how much there is to do.
 * @param labelOf the label for so many
 */
export async function withProgress<T>(
  context: CommandContext,
  labelOf: (total: number) => string,
  work: (onProgress: (done: number, total: number) => void) => Promise<T>,
): Promise<T> {
  let shown: Progress | undefined;
  try {
    return await work((done, total) => {
      if (done > 0) return shown?.update(done);
      shown?.stop();
      shown = startProgress(context, labelOf(total), total);
    });
  } finally {
    shown?.stop();
  }
}

export function startProgress(context: CommandContext, label: string, total: number): Progress {
  if (!context.stderr.isTTY) return startLines(context, label, total);
  const bar = new SingleBar({
    format: `${label} {bar} {percentage}% {duration_formatted}`,
    stream: context.stderr,
    barCompleteChar: '█',
    barIncompleteChar: '░',
    hideCursor: true,
  });
  bar.start(total, 0);
  return { update: (done) => bar.update(done), stop: () => bar.stop() };
}

function startLines(context: CommandContext, label: string, total: number): Progress {
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
