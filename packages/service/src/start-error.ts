/** The service cannot start; the message is one line that says what to mend. */
export class StartError extends Error {
  override readonly name = 'StartError';
}

/** Characters; a server that is not ours may answer with a page. */
const LONGEST_REASON = 300;

/** @param message what does not work; the cause's own words, if it has any, follow it in brackets */
export function startError(message: string, cause: unknown): StartError {
  const reason = reasonOf(cause);
  return new StartError(reason === '' ? message : `${message} (${reason})`, { cause });
}

export interface Listening {
  readonly port: number;
  /** The variable that the port came from. */
  readonly variable: string;
  /** The address in LISTEN_HOST; undefined: all of this machine. */
  readonly host: string | undefined;
}

/** A port could not be listened on. */
export function listenError({ port, variable, host }: Listening, cause: unknown): StartError {
  const place = host === undefined ? `port ${port}` : `port ${port} of ${host}`;
  const others = host === undefined ? '' : ', or LISTEN_HOST to an address of this machine';
  return startError(`cannot listen on ${place}; free it or set ${variable} to another${others}`, cause);
}

/** Connecting to a name with several addresses fails with one error for each of them and no message of its own. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ');
  const text = (error instanceof Error ? error.message : String(error)).replace(/\s+/g, ' ').trim();
  return text.length > LONGEST_REASON ? `${text.slice(0, LONGEST_REASON)}…` : text;
}

/** Without the credentials that a URL may hold. */
export function hostOf(url: string): string {
  return new URL(url).host;
}
