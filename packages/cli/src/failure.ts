/** How a command ends badly: its exit code, and what it says to the person. */

/** What a process that started `meterline` may rely on; shown under every --help. */
export const EXIT_CODES = { ok: 0, failed: 1, usage: 2, notAllowed: 3, unavailable: 4, rejected: 5 } as const;
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
