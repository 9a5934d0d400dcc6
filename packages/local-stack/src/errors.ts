/** Thrown for expected problems of local servers. The message explains how to fix the problem. */
export class LocalStackError extends Error {
  override readonly name = 'LocalStackError';
}

/** Returns whether the error has this code. Does not use `instanceof`, because under Jest, Node's errors come from another realm. */
export function hasErrorCode(error: unknown, code: string): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === code;
}

/** Returns the message of an error. Does not use `instanceof`, for the same reason as {@link hasErrorCode}. */
export function errorMessage(error: unknown): string {
  return typeof error === 'object' && error !== null && 'message' in error ? String(error.message) : String(error);
}
