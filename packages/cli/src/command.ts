/** Defines the context of a command: streams, settings, clock and interruption. */
import type { Readable, Writable } from 'node:stream';
import type { Settings } from './settings.js';

export interface CommandStreams {
  /** Results only, so that they can be piped. `columns` is the width of a terminal. */
  readonly stdout: Writable & { readonly isTTY?: boolean | undefined; readonly columns?: number | undefined };
  /** Messages, progress and questions. */
  readonly stderr: Writable & { readonly isTTY?: boolean | undefined };
}

/** Everything outside its own code that a command uses; tests replace it. */
export interface CommandContext extends CommandStreams {
  readonly settings: Settings;
  readonly stdin: Readable & { readonly isTTY?: boolean | undefined };
  now(): Date;
  /**
   * Returns a signal that Ctrl-C or SIGTERM aborts; from this call on, only a second Ctrl-C or SIGTERM ends the process. For
   * commands that finish a step and report what they did before they exit.
   */
  interruption(): AbortSignal;
}

export function say({ stderr }: Pick<CommandStreams, 'stderr'>, line: string): void {
  stderr.write(`${line}\n`);
}

/**
 * Shows progress. On a terminal, all calls share one line: each call replaces its text, and '' clears it. Elsewhere, only milestones
 * are printed, one per line.
 */
export function sayProgress({ stderr }: Pick<CommandStreams, 'stderr'>, text: string, isMilestone = false): void {
  if (stderr.isTTY) stderr.write(`\r\u001b[K${text}`);
  else if (isMilestone) stderr.write(`${text}\n`);
}

export function formatCount(count: number): string {
  return count.toLocaleString('en-US');
}
