import { SingleBar } from 'cli-progress';
import { type CommandContext, formatCount, say } from './command-context.js';

/** Shows how far a long step has come: a bar on a terminal, a line for every tenth of the way elsewhere. */
export interface Progress {
  update(done: number): void;
  stop(): void;
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
