/** Opens API clients from the settings of a command, and turns client errors into messages for users. */
import { ALL_ACCOUNTS, type Fetch, MeterlineClient, MeterlineConnectionError, MeterlineError } from '@meterline/client';
import { connectionHint } from '@meterline/service/connection-hint';
import { type CommandContext, formatCount, say } from '../command.js';
import { CommandError, EXIT_CODES, type ExitCode, systemErrorCode, usageError } from '../failure.js';
import { flagName } from '../flags.js';
import type { Setting } from '../setting-sources.js';
import { type ApiAccess, type ApiFlags, keyStart, loginCommand, settingText } from '../settings.js';

export interface ApiSession {
  readonly client: MeterlineClient;
  readonly access: ApiAccess;
}

/** Runs `work` with an API client. @throws CommandError if no key is known, or if the API rejects a request or cannot be reached */
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

export function openClient(context: CommandContext, { debug }: ApiFlags, url: Setting, key: Setting): MeterlineClient {
  const options = { baseUrl: url.value, credential: key.value };
  if (!debug) return new MeterlineClient(options);
  say(context, `meterline: API ${settingText(url)}, key ${settingText({ ...key, value: keyStart(key.value) })}`);
  return new MeterlineClient({
    ...options,
    fetch: loggingFetch((line) => say(context, `meterline: ${line}`)),
  });
}

export interface AccountSession extends ApiSession {
  /** The account from the settings, the only account of the key, or `ALL_ACCOUNTS`. */
  readonly account: string;
}

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

/** Maximum number of accounts in a message. An operator's key can access all accounts. */
const MAX_NAMED = 10;

/** Returns the only account of the key. @throws CommandError if the key has no account or several accounts */
export async function onlyAccount(client: MeterlineClient, signal?: AbortSignal): Promise<string> {
  const accounts = await client.accounts({ signal });
  const [account] = accounts;
  if (account && accounts.length === 1) return account.id;
  if (!account) throw usageError('the key can access no account; choose one with --account');
  const more = accounts.length > MAX_NAMED ? [`and ${accounts.length - MAX_NAMED} more`] : [];
  const named = [...accounts.slice(0, MAX_NAMED).map(({ id }) => id), ...more];
  throw usageError(`choose an account with --account: ${named.join(', ')}`);
}

interface ServerAccess extends Pick<ApiAccess, 'url' | 'key'>, Partial<Pick<ApiAccess, 'profile'>> {
  /** The server that rejected a request, or undefined for the API. */
  readonly server?: 'collector' | undefined;
}

/** Runs `work`, and converts errors of the client to errors of the command. @throws CommandError */
export async function withClientErrors<T>(access: ServerAccess, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof MeterlineError) throw rejection(access, error);
    if (error instanceof MeterlineConnectionError) throw connectionFailure(access, error);
    throw error;
  }
}

function rejection({ profile, key, server }: ServerAccess, error: MeterlineError): CommandError {
  const { code, message, requestId, status } = error;
  const request = requestId === undefined ? '' : `, request ${requestId}`;
  const target = server ? ` (from the ${server}, key from ${key?.source})` : '';
  const hint = status === 403 || !server ? hintOn(error, key, profile) : '';
  const subject = server ? '' : flagsOf(error);
  return new CommandError(`${subject}${message} (${status} ${code}${request})${target}${hint}`, exitCodeOf(error), {
    cause: error,
  });
}

/** Returns the flags that set the invalid fields of a body, such as `--threshold, --url: `. */
function flagsOf({ code, details }: MeterlineError): string {
  if (code !== 'invalid_body') return '';
  const fields = details.map(({ parameter = '' }) => parameter.replace(/^filters\./, '').replace(/s?(\..*)?$/, ''));
  return `${[...new Set(fields.map(flagName))].join(', ')}: `;
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
        ? ' It overrides a login: replace it, or unset it.'
        : '';
  if (status === 401) return `\nThe key is from ${key?.source}.${again}`;
  if (code === 'cursor_expired') {
    return '\nThe data changed between pages: run the command again without --cursor, or end the window earlier with --to.';
  }
  // All 403 responses have the same message. The details explain the reason.
  if (status !== 403) return '';
  const reasons = details.map((detail) => `\n${detail['message'] ?? ''}`).join('');
  return reasons.replace('GET /v0/accounts', '"meterline accounts"');
}

function exitCodeOf({ code, status }: MeterlineError): ExitCode {
  if (code === 'cursor_expired') return EXIT_CODES.failed;
  if (status === 401 || status === 403) return EXIT_CODES.notAllowed;
  if (status === 400) return EXIT_CODES.usage;
  return status === 408 || status === 429 || status >= 500 ? EXIT_CODES.unavailable : EXIT_CODES.failed;
}

function connectionFailure({ url, server }: ServerAccess, error: MeterlineConnectionError): CommandError {
  const reason = reasonOf(error.cause);
  const name = server ?? 'API';
  const target = `the ${name} at ${url.value} (from ${url.source})`;
  const hint = connectionHint(error) ?? 'is it running?';
  const text = reason === undefined ? error.message.replace('API', name) : `cannot reach ${target}: ${reason}; ${hint}`;
  return new CommandError(text, EXIT_CODES.unavailable, { cause: error });
}

/** Returns the code of a network error. Node's fetch wraps the original error, so the cause of the cause has the code. */
function reasonOf(error: unknown): string | undefined {
  const cause = typeof error === 'object' && error !== null && 'cause' in error ? error.cause : undefined;
  return systemErrorCode(cause) ?? systemErrorCode(error);
}

/**
 * Returns a fetch that logs each attempt, including retries: method, path, status, duration until the body was read, size, request ID, and
 * start time in milliseconds since the process started. Never logs request headers, because one of them contains the key.
 */
function loggingFetch(log: (line: string) => void): Fetch {
  return async (url, init) => {
    const start = performance.now();
    const { pathname, search } = new URL(url);
    const request = `${init.method} ${pathname}${search}`;
    const duration = () =>
      `in ${formatCount(Math.round(performance.now() - start))} ms (${formatCount(Math.round(start))} ms after the start)`;
    try {
      const response = await fetch(url, init);
      const text = await response.text();
      const { ok, status, headers } = response;
      const id = headers.get('x-request-id') ?? 'none';
      log(`${request}: ${status} ${duration()}, ${formatCount(Buffer.byteLength(text))} bytes, request ${id}`);
      return { ok, status, headers, text: async () => text };
    } catch (error) {
      const cause = error instanceof Error ? error.cause : undefined;
      log(`${request}: no response ${duration()}: ${reasonOf(error) ?? cause ?? error}`);
      throw error;
    }
  };
}
