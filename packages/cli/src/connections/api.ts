/** The query API as a command uses it: opened with what the settings say, and its failures in words for people. */
import { MeterlineClient, MeterlineConnectionError, MeterlineError } from '@meterline/client';
import {
  type CommandContext,
  CommandError,
  EXIT_CODES,
  type ExitCode,
  say,
  systemErrorCode,
  usageError,
} from '../command.js';
import type { ApiAccess, ApiFlags } from '../settings/api-settings.js';
import { keyStart, placeText, type Setting } from '../settings/settings.js';
import { describedFetch } from './described-fetch.js';
import { httpFetch } from './http-fetch.js';

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
  const access = await context.apiSettings.access(flags);
  for (const warning of access.warnings) say(context, `meterline: ${warning}`);
  if (!access.key) {
    throw usageError(
      `there is no API key for ${access.url.value} (from ${access.url.source}); run "meterline login", or set METERLINE_API_KEY`,
    );
  }
  const client = openClient(context, flags, access.url, access.key);
  return withClientErrors(access, () => work({ client, access }));
}

/** A client of this address. With --debug it says on stderr what it asks. */
export function openClient(context: CommandContext, { debug }: ApiFlags, url: Setting, key: Setting): MeterlineClient {
  const options = { baseUrl: url.value, credential: key.value, fetch: httpFetch };
  if (!debug) return new MeterlineClient(options);
  say(context, `meterline: API ${placeText(url)}, key ${placeText({ ...key, value: keyStart(key.value) })}`);
  return new MeterlineClient({
    ...options,
    fetch: describedFetch(httpFetch, (line) => say(context, `meterline: ${line}`)),
  });
}

export interface AccountSession extends ApiSession {
  /** What was named, or the only one that the key belongs to. */
  readonly account: string;
}

/** The same for the usage of one account. */
export async function withAccount<T>(
  context: CommandContext,
  flags: ApiFlags,
  work: (session: AccountSession) => Promise<T>,
): Promise<T> {
  return withApi(context, flags, async (session) => {
    const account = session.access.account?.value ?? (await onlyAccount(session.client));
    return work({ ...session, account });
  });
}

async function onlyAccount(client: MeterlineClient): Promise<string> {
  const accounts = await client.accounts();
  const [account] = accounts;
  if (account && accounts.length === 1) return account.id;
  if (!account) throw usageError('the key belongs to no account; name one with --account');
  throw usageError(`name an account with --account: ${accounts.map(({ id }) => id).join(', ')}`);
}

/** Runs `work`, and turns the client's errors into what they mean at a terminal. @throws CommandError */
export async function withClientErrors<T>(access: Pick<ApiAccess, 'url' | 'key'>, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof MeterlineError) throw refusal(access, error);
    if (error instanceof MeterlineConnectionError) throw unreachable(access, error);
    throw error;
  }
}

function refusal({ key }: Pick<ApiAccess, 'key'>, error: MeterlineError): CommandError {
  const { code, message, requestId, status } = error;
  const request = requestId === undefined ? '' : `, request ${requestId}`;
  const hint = hintOn(error, key?.source ?? 'no key');
  return new CommandError(`${message} (${status} ${code}${request})${hint}`, exitCodeOf(status), { cause: error });
}

function hintOn({ code, status }: MeterlineError, source: string): string {
  if (status === 401) return `\nThe key is from ${source}. Log in again with "meterline login".`;
  if (code === 'forbidden') {
    return '\nEither the key is not of this account ("meterline accounts" lists yours), or it is a member\'s: only an admin may group or filter by workspace.';
  }
  return '';
}

function exitCodeOf(status: number): ExitCode {
  if (status === 401 || status === 403) return EXIT_CODES.notAllowed;
  if (status === 400) return EXIT_CODES.usage;
  return status === 429 || status >= 500 ? EXIT_CODES.unavailable : EXIT_CODES.failed;
}

function unreachable({ url }: Pick<ApiAccess, 'url'>, error: MeterlineConnectionError): CommandError {
  const reason = reasonOf(error.cause);
  const detail =
    reason === undefined
      ? error.message
      : `cannot reach the API at ${url.value} (from ${url.source}): ${reason}; is it running?`;
  return new CommandError(detail, EXIT_CODES.unavailable, { cause: error });
}

/** Node's fetch, which follows a redirection, wraps what went wrong: the cause of the cause has the code. */
function reasonOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || error.name === 'TimeoutError') return undefined;
  return systemErrorCode(error.cause) ?? systemErrorCode(error);
}
