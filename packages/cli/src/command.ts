/** What every command works with: the outside world, its results and its errors. */
import type { Readable, Writable } from 'node:stream';
import type { Tracing } from '@meterline/service/tracing';
import type { Command } from 'commander';
import type { ApiSettings } from './settings/api-settings.js';
import type { Environment, Settings } from './settings/settings.js';

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
  /** Where the API is and which key to show it. */
  readonly apiSettings: ApiSettings;
  /** Where the servers behind the API are. */
  readonly settings: Settings;
  /** The path of the file that login writes. */
  readonly configFile: string;
  /** Loaded by the first command that asks for it. @throws CommandError when the environment asks for what there is not */
  tracing(): Promise<Tracing>;
  readonly stdin: Readable & { readonly isTTY?: boolean | undefined };
  now(): Date;
  /**
   * From this call on Ctrl-C and SIGTERM no longer end the process but abort the signal; a second one ends it.
   * For commands that have something to finish and to say.
   */
  interruption(): AbortSignal;
}

/** What the module of a command exports. */
export interface CommandModule {
  /** Adds the command, with all its flags, to the program. */
  addCommand(program: Command, context: CommandContext): void;
}

/** The result of a command: one JSON document with --json, else text for people. */
export function printResult({ stdout }: CommandStreams, json: boolean | undefined, value: unknown, text: string): void {
  stdout.write(`${json ? JSON.stringify(value) : text}\n`);
}

export function say({ stderr }: Pick<CommandStreams, 'stderr'>, line: string): void {
  stderr.write(`${line}\n`);
}

/** 1234567 as 1,234,567. */
export function formatCount(count: number): string {
  return count.toLocaleString('en-US');
}

/** What a process that started `meterline` may rely on; shown under every --help. */
export const EXIT_CODES = { ok: 0, failed: 1, usage: 2, notAllowed: 3, unavailable: 4, refused: 5 } as const;
export type ExitCode = (typeof EXIT_CODES)[keyof typeof EXIT_CODES];

/** An expected way for a command to end badly. The message is one for people: what failed and how to fix it. */
export class CommandError extends Error {
  override readonly name = 'CommandError';

  constructor(
    message: string,
    readonly exitCode: ExitCode = EXIT_CODES.failed,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The command was called in a way that cannot work. */
export function usageError(message: string): CommandError {
  return new CommandError(message, EXIT_CODES.usage);
}

/** The code of a failed system call or connection, such as ENOENT; undefined for any other error. */
export function systemErrorCode(error: unknown): string | undefined {
  const hasCode = typeof error === 'object' && error !== null && 'code' in error;
  return hasCode && typeof error.code === 'string' ? error.code : undefined;
}

const READ_FAILURES: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'permission denied',
  EISDIR: 'it is a directory',
};

/** A file that the command should read cannot be read. */
export function readFailure(path: string, cause: unknown): CommandError {
  const code = systemErrorCode(cause) ?? String(cause);
  return new CommandError(`cannot read ${path}: ${READ_FAILURES[code] ?? code}`, undefined, { cause });
}
