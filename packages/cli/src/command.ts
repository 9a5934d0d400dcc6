/** What every command works with: the outside world, its results and its errors. */
import type { Readable, Writable } from 'node:stream';
import type { Environment, Settings } from './settings.js';

export interface CommandStreams {
  /** Results only, so that they can be piped. `columns` and `rows` are the size of a terminal. */
  readonly stdout: Writable & {
    readonly isTTY?: boolean | undefined;
    readonly columns?: number | undefined;
    readonly rows?: number | undefined;
  };
  /** Everything said to the person at the terminal. */
  readonly stderr: Writable & { readonly isTTY?: boolean | undefined };
}

/** What a command may touch of the outside world. */
export interface CommandContext extends CommandStreams {
  readonly environment: Environment;
  readonly settings: Settings;
  readonly stdin: Readable & { readonly isTTY?: boolean | undefined };
  now(): Date;
  /**
   * From this call on Ctrl-C and SIGTERM no longer end the process but abort the signal; a second one ends it.
   * For commands that have something to finish and to say.
   */
  interruption(): AbortSignal;
}

export function say({ stderr }: Pick<CommandStreams, 'stderr'>, line: string): void {
  stderr.write(`${line}\n`);
}

/**
 * How far a command has come: in a terminal on one line, which the next call writes over and '' removes; elsewhere on lines of their own,
 * the milestones alone.
 */
export function sayProgress({ stderr }: Pick<CommandStreams, 'stderr'>, text: string, isMilestone = false): void {
  if (stderr.isTTY) stderr.write(`\r\u001b[K${text}`);
  else if (isMilestone) stderr.write(`${text}\n`);
}

/** 1234567 as 1,234,567. */
export function formatCount(count: number): string {
  return count.toLocaleString('en-US');
}
