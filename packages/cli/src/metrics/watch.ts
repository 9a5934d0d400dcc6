/** Shows a result again and again, until the person has seen enough. */
import { setTimeout as delay } from 'node:timers/promises';
import { type CommandContext, say } from '../command.js';
import { CommandError, EXIT_CODES } from '../failure.js';

/** Another screen than that of the shell, so that what stood there stays; without a cursor. */
const ENTER = '\u001b[?1049h\u001b[?25l';
const LEAVE = '\u001b[?25h\u001b[?1049l';
const TO_THE_TOP = '\u001b[H';
const CLEAR_LINE = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';

type Terminal = Pick<CommandContext, 'stdout' | 'stderr' | 'now'>;

export interface Watch {
  readonly seconds: number;
  /** Aborted when the person has seen enough. */
  readonly signal: AbortSignal;
  /** Draws on another screen of the terminal; else one result is printed after another. */
  readonly isOnScreen: boolean;
  /** @returns the text of the result */
  readonly read: () => Promise<string>;
}

/**
 * Ends without an error once the signal is aborted, and leaves the last result on the terminal. A service that cannot be
 * reached, or is busy, is asked again at the next turn.
 * @throws any other error of `read`
 */
export async function watch(context: Terminal, { seconds, signal, isOnScreen, read }: Watch): Promise<void> {
  const { stdout } = context;
  let last: string | undefined;
  if (isOnScreen) stdout.write(ENTER);
  try {
    while (!signal.aborted) {
      const fault = await attempt(async () => {
        last = await read();
      });
      if (isOnScreen) draw(context, last ?? '', fault, seconds);
      else if (fault !== undefined) say(context, `meterline: ${fault}; asking again in ${seconds} s`);
      else stdout.write(last ?? '');
      await delay(seconds * 1_000, undefined, { signal });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    if (isOnScreen) stdout.write(`${LEAVE}${(last ?? '').trimEnd()}\n`);
  }
}

/** @returns why there is no result this time */
async function attempt(work: () => Promise<void>): Promise<string | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    if (error instanceof CommandError && error.exitCode === EXIT_CODES.unavailable) return error.message;
    throw error;
  }
}

/** Written over what stands there, line by line, so that nothing flickers; what does not fit is counted. */
function draw({ stdout, now }: Terminal, text: string, fault: string | undefined, seconds: number): void {
  const time = now().toISOString().slice(11, 19);
  const state = fault === undefined ? `as of ${time} UTC` : `${time} UTC: ${fault.split('\n', 1)[0]}`;
  const lines = [`Every ${seconds} s, ${state}. Ctrl-C ends.`, '', ...text.trimEnd().split('\n')];
  const height = stdout.rows ?? lines.length;
  const shown =
    lines.length <= height ? lines : [...lines.slice(0, height - 1), `… ${lines.length - height + 1} more lines`];
  stdout.write(`${TO_THE_TOP}${shown.map((line) => line + CLEAR_LINE).join('\n')}${CLEAR_BELOW}`);
}
