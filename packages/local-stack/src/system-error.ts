/** Whether Node reports this errno code. Errors of Node itself come from another realm under Jest, so no `instanceof`. */
export function hasErrorCode(error: unknown, code: string): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === code;
}

/** The code and its meaning, such as `ENOTDIR: not a directory`, without the call and the path that Node adds. */
export function systemReason(error: unknown): string {
  return String(error)
    .replace(/^Error: /, '')
    .replace(/, \w+ '.*$/s, '');
}
