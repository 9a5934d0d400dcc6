export type LocalStackErrorCode =
  | 'unsupported_platform'
  | 'port_in_use'
  | 'directory_in_use'
  | 'data_directory_unusable'
  | 'file_damaged'
  | 'exited_early'
  | 'not_ready_in_time'
  | 'not_answering';

/** An expected reason why a local server cannot run. The message is meant for a person and says how to mend it. */
export class LocalStackError extends Error {
  override readonly name = 'LocalStackError';

  constructor(
    readonly code: LocalStackErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
