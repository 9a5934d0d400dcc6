/** An expected reason why a local server cannot run. The message is meant for a person and says how to fix it. */
export class LocalStackError extends Error {
  override readonly name = 'LocalStackError';
}

/** Whether Node reports this errno code. Errors of Node itself come from another realm under Jest, so no `instanceof`. */
export function hasErrorCode(error: unknown, code: string): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === code;
}

/** No `instanceof` for the same reason. */
export function errorMessage(error: unknown): string {
  return typeof error === 'object' && error !== null && 'message' in error ? String(error.message) : String(error);
}
