/** Thrown for expected problems of local servers. The message explains the fix. */
export class LocalStackError extends Error {
  override readonly name = 'LocalStackError';
}

/** Returns whether the error has this code. Not with `instanceof`, because under Jest, Node's errors come from another realm. */
export function hasErrorCode(error: unknown, code: string): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === code;
}

/** Without `instanceof`, for the same reason. */
export function errorMessage(error: unknown): string {
  return typeof error === 'object' && error !== null && 'message' in error ? String(error.message) : String(error);
}
