import type { Readable, Writable } from 'node:stream';
import type { Tracing } from '@meterline/service/tracing';
import type { Settings } from './settings/settings.js';

/** What a command may touch of the outside world. */
export interface CommandContext {
  readonly settings: Settings;
  readonly tracing: Tracing;
  readonly stdin: Readable;
  /** Results only, so that they can be piped. */
  readonly stdout: Writable;
  /** Everything said to the person at the terminal. */
  readonly stderr: Writable & { readonly isTTY?: boolean | undefined };
  now(): Date;
  /**
   * From this call on Ctrl-C and SIGTERM no longer end the process but abort the signal; a second one ends it.
   * For commands that have something to finish and to say.
   */
  interruption(): AbortSignal;
}

/** The result of a command: one JSON document with --json, else text for people. */
export function printResult({ stdout }: CommandContext, json: boolean | undefined, value: unknown, text: string): void {
  stdout.write(`${json ? JSON.stringify(value) : text}\n`);
}

export function say({ stderr }: CommandContext, line: string): void {
  stderr.write(`${line}\n`);
}

/** 1234567 as 1,234,567. */
export function formatCount(count: number): string {
  return count.toLocaleString('en-US');
}
