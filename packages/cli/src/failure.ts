/** Defines expected errors of commands and their exit codes. */
import { getSystemErrorMap } from 'node:util';

/** Exit codes. Scripts rely on them, and every --help lists them. */
export const EXIT_CODES = { ok: 0, failed: 1, usage: 2, notAllowed: 3, unavailable: 4, rejected: 5 } as const;
export type ExitCode = (typeof EXIT_CODES)[keyof typeof EXIT_CODES];

/** An expected error. Its message tells users what failed and how to fix it. */
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

export function usageError(message: string): CommandError {
  return new CommandError(message, EXIT_CODES.usage);
}

/** Returns the code of a failed system call or connection, such as ENOENT. Returns undefined for any other error. */
export function systemErrorCode(error: unknown): string | undefined {
  const hasCode = typeof error === 'object' && error !== null && 'code' in error;
  return hasCode && typeof error.code === 'string' ? error.code : undefined;
}

/** Returns the operating system's text for a failed system call, such as "no space left on device", or undefined for other errors. */
export function systemErrorText(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('errno' in error && 'syscall' in error)) return undefined;
  const [, text] = getSystemErrorMap().get(Number(error.errno)) ?? [];
  return text ?? systemErrorCode(error);
}

export function readFailure(path: string, cause: unknown): CommandError {
  return new CommandError(`cannot read ${path}: ${systemErrorText(cause) ?? cause}`, undefined, { cause });
}
