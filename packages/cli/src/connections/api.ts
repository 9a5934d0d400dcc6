/** The query API as a command uses it: opened with what the settings say, and its failures in words for people. */
import { ALL_ACCOUNTS, type Fetch, MeterlineClient, MeterlineConnectionError, MeterlineError } from '@meterline/client';
import { connectionHint } from '@meterline/service/connection-hint';
import { type CommandContext, formatCount, say } from '../command.js';
import { CommandError, EXIT_CODES, type ExitCode, systemErrorCode, usageError } from '../failure.js';
import type { ApiAccess, ApiFlags } from '../settings.js';
import { keyStart, loginCommand, placeText, type Setting } from '../settings.js';

export interface ApiSession {
  readonly client: MeterlineClient;
  readonly access: ApiAccess;
}

/**
 * Runs `work` with the API.
 * @throws CommandError when there is no key, when the API refuses, or when it cannot be reached
 */
export async function withApi<T>(
  context: CommandContext,
  flags: ApiFlags,
  work: (session: ApiSession) => Promise<T>,
): Promise<T> {
  const access = await context.settings.api(flags);
  if (access.warning !== undefined) say(context, `meterline: ${access.warning}`);
  if (!access.key) {
    throw usageError(
      `there is no API key for ${access.url.value} (from ${access.url.source}); run "${loginCommand(access.profile)}", or set METERLINE_API_KEY`,
    );
  }
  const client = openClient(context, flags, access.url, access.key);
  return withClientErrors(access, () => work({ client, access }));
}

/** A client of this address. With --debug it says on stderr what it asks. */
export function openClient(context: CommandContext, { debug }: ApiFlags, url: Setting, key: Setting): MeterlineClient {
  const options = { baseUrl: url.value, credential: key.value };
  if (!debug) return new MeterlineClient(options);
  say(context, `meterline: API ${placeText(url)}, key ${placeText({ ...key, value: keyStart(key.value) })}`);
  return new MeterlineClient({
    ...options,
    fetch: describedFetch((line) => say(context, `meterline: ${line}`)),
  });
}

export interface AccountSession extends ApiSession {
  /** What was named, or the only one that the key belongs to; or `ALL_ACCOUNTS`. */
  readonly account: string;
}

/** Does what `withApi` does for the usage of one account, or of every account that the key may read. */
export async function withAccount<T>(
  context: CommandContext,
  flags: ApiFlags & { readonly allAccounts?: boolean | undefined },
  work: (session: AccountSession) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  return withApi(context, flags, async (session) => {
    const named = flags.allAccounts ? ALL_ACCOUNTS : session.access.account?.value;
    return work({ ...session, account: named ?? (await onlyAccount(session.client, signal)) });
  });
}

/** An operator's key has all accounts. */
const MOST_NAMED = 10;

/** @throws CommandError unless there is exactly one */
export async function onlyAccount(client: MeterlineClient, signal?: AbortSignal): Promise<string> {
  const accounts = await client.accounts({ signal });
  const [account] = accounts;
  if (account && accounts.length === 1) return account.id;
  if (!account) throw usageError('the key belongs to no account; name one with --account');
  const more = accounts.length > MOST_NAMED ? [`and ${accounts.length - MOST_NAMED} more`] : [];
  const named = [...accounts.slice(0, MOST_NAMED).map(({ id }) => id), ...more];
  throw usageError(`name an account with --account: ${named.join(', ')}`);
}

interface ServerAccess extends Pick<ApiAccess, 'url' | 'key'>, Partial<Pick<ApiAccess, 'profile'>> {
  /** What answers there; by default the API. */
  readonly server?: 'collector' | undefined;
}

/** Runs `work`, and turns the client's errors into what they mean at a terminal. @throws CommandError */
export async function withClientErrors<T>(access: ServerAccess, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof MeterlineError) throw refusal(access, error);
    if (error instanceof MeterlineConnectionError) throw unreachable(access, error);
    throw error;
  }
}

function refusal({ profile, key, server }: ServerAccess, error: MeterlineError): CommandError {
  const { code, message, requestId, status } = error;
  const request = requestId === undefined ? '' : `, request ${requestId}`;
  const target = server ? ` (from the ${server}, key from ${key?.source})` : '';
  const hint = status === 403 || !server ? hintOn(error, key, profile) : '';
  return new CommandError(`${message} (${status} ${code}${request})${target}${hint}`, exitCodeOf(error), {
    cause: error,
  });
}

function hintOn(
  { code, details, status }: MeterlineError,
  key: Setting | undefined,
  profile: Setting | undefined,
): string {
  const again =
    key?.kind === 'login file'
      ? ` Log in again with "${loginCommand(profile)}".`
      : key?.kind === 'environment'
        ? ' It comes before a login: replace it, or unset it.'
        : '';
  if (status === 401) return `\nThe key is from ${key?.source}.${again}`;
  if (code === 'cursor_expired') {
    return '\nThe response changed while its pages were read: run the command again without --cursor, or end the window earlier with --to.';
  }
  // Why: the message is the same for every reason.
  if (status === 403) return details.map((detail) => `\n${detail['message'] ?? ''}`).join('');
  return '';
}

function exitCodeOf({ code, status }: MeterlineError): ExitCode {
  if (code === 'cursor_expired') return EXIT_CODES.failed;
  if (status === 401 || status === 403) return EXIT_CODES.notAllowed;
  if (status === 400) return EXIT_CODES.usage;
  return status === 408 || status === 429 || status >= 500 ? EXIT_CODES.unavailable : EXIT_CODES.failed;
}

function unreachable({ url, server }: ServerAccess, error: MeterlineConnectionError): CommandError {
  const reason = reasonOf(error.cause);
  const name = server ?? 'API';
  const target = `the ${name} at ${url.value} (from ${url.source})`;
  const hint = connectionHint(error) ?? 'is it running?';
  const text = reason === undefined ? error.message.replace('API', name) : `cannot reach ${target}: ${reason}; ${hint}`;
  return new CommandError(text, EXIT_CODES.unavailable, { cause: error });
}

/** Node's fetch wraps what went wrong: the cause of the cause has the code. */
function reasonOf(error: unknown): string | undefined {
  const cause = typeof error === 'object' && error !== null && 'cause' in error ? error.cause : undefined;
  return systemErrorCode(cause) ?? systemErrorCode(error);
}

/**
 * A fetch that says of each attempt, retries included: method, path, status, the time until the response was read, its size and
 * request id, and when it began, in milliseconds since the process did. Nothing of the headers that were sent: the key is
 * among them.
 */
function describedFetch(say: (line: string) => void): Fetch {
  return async (url, init) => {
    const begun = performance.now();
    const { pathname, search } = new URL(url);
    const requested = `${init.method} ${pathname}${search}`;
    const took = () =>
      `in ${formatCount(Math.round(performance.now() - begun))} ms (${formatCount(Math.round(begun))} ms after the start)`;
    try {
      const response = await fetch(url, init);
      const text = await response.text();
      const { ok, status, headers } = response;
      const id = headers.get('x-request-id') ?? 'none';
      say(`${requested}: ${status} ${took()}, ${formatCount(Buffer.byteLength(text))} bytes, request ${id}`);
      return { ok, status, headers, text: async () => text };
    } catch (error) {
      const cause = error instanceof Error ? error.cause : undefined;
      say(`${requested}: no response ${took()}: ${reasonOf(error) ?? cause ?? error}`);
      throw error;
    }
  };
}
