/** Defines the context of a command: streams, settings, clock and interruption. */
import type { Readable, Writable } from 'node:stream';
import type { Settings } from './settings.js';

export interface CommandStreams {
  /** Results only, so that users can pipe them. `columns` is the width of a terminal. */
  readonly stdout: Writable & { readonly isTTY?: boolean | undefined; readonly columns?: number | undefined };
  /** Messages, progress, and prompts for confirmation. */
  readonly stderr: Writable & { readonly isTTY?: boolean | undefined };
}

/** Everything that a command uses besides its own code. Tests replace it. */
export interface CommandContext extends CommandStreams {
  readonly settings: Settings;
  readonly stdin: Readable & { readonly isTTY?: boolean | undefined };
  now(): Date;
  /** Returns a signal that Ctrl-C or SIGTERM aborts, so that a command can finish its step and report. A second Ctrl-C ends the process. */
  interruption(): AbortSignal;
}

export function say({ stderr }: Pick<CommandStreams, 'stderr'>, line: string): void {
  stderr.write(`${line}\n`);
}

/** Shows progress. On a terminal, each call replaces the same line, and '' clears it. Elsewhere, prints only milestones, one per line. */
export function sayProgress({ stderr }: Pick<CommandStreams, 'stderr'>, text: string, isMilestone = false): void {
  if (stderr.isTTY) stderr.write(`\r\u001b[K${text}`);
  else if (isMilestone) stderr.write(`${text}\n`);
}

export function formatCount(count: number): string {
  return count.toLocaleString('en-US');
}
