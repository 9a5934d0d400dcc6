import { SingleBar } from 'cli-progress';
import { type CommandContext, say } from '../command-context.js';

/** Shows how far a long step has come: a bar on a terminal, one plain line elsewhere. */
export interface Progress {
  update(done: number): void;
  stop(): void;
}

export function startProgress(context: CommandContext, label: string, total: number): Progress {
  if (!context.stderr.isTTY) {
    say(context, `${label} …`);
    return { update: () => undefined, stop: () => undefined };
  }
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
