/** How a command ends badly: its exit code, and what it says to the person. */
import { getSystemErrorMap } from 'node:util';

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

/** What has failed, in the system's words, such as "no space left on device"; undefined for what is no failed call of the system. */
export function systemErrorText(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('errno' in error && 'syscall' in error)) return undefined;
  const [, text] = getSystemErrorMap().get(Number(error.errno)) ?? [];
  return text ?? systemErrorCode(error);
}

/** A file that the command should read cannot be read. */
export function readFailure(path: string, cause: unknown): CommandError {
  return new CommandError(`cannot read ${path}: ${systemErrorText(cause) ?? cause}`, undefined, { cause });
}
