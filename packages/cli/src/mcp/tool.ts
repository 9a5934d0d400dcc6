/** What the tools share: how a call becomes a result or an error, and how much a result may hold. */
import type { CallToolResult } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { type CommandContext, say } from '../command.js';
import { type AccountSession, withAccount } from '../connections/api.js';
import { CommandError } from '../failure.js';
import type { ApiFlags } from '../settings.js';

/** The command that serves the tools. */
export interface Host {
  readonly context: CommandContext;
  readonly flags: ApiFlags;
}

export const READ_ONLY = { readOnlyHint: true, openWorldHint: false } as const;

/** The flags that messages of the commands name, where a tool has arguments. */
const FLAGS = /--(account|all-accounts|compare|cursor|from|to)\b/g;

/** Expected errors, such as those of the API, become results that the model can read; a bug also goes to standard error. */
export async function resultOf(
  { context }: Host,
  signal: AbortSignal,
  read: () => Promise<Record<string, unknown>>,
): Promise<CallToolResult> {
  try {
    const structuredContent = await read();
    return { content: [{ type: 'text', text: JSON.stringify(structuredContent) }], structuredContent };
  } catch (error) {
    if (error instanceof CommandError) {
      const text = error.message.replace(
        FLAGS,
        (_, name: string) => `the argument "${name === 'all-accounts' ? 'allAccounts' : name}"`,
      );
      return { content: [{ type: 'text', text }], isError: true };
    }
    if (!signal.aborted) say(context, `meterline: ${error instanceof Error ? error.stack : error}`);
    throw error;
  }
}

/** Does what {@link resultOf} does with the client of the account that the arguments name; by default that of the command. */
export function accountResult(
  host: Host,
  args: { readonly account?: string | undefined; readonly allAccounts?: boolean | undefined },
  signal: AbortSignal,
  work: (session: AccountSession) => Promise<Record<string, unknown>>,
): Promise<CallToolResult> {
  const flags = { ...host.flags, account: args.account ?? host.flags.account, allAccounts: args.allAccounts };
  return resultOf(host, signal, () => withAccount(host.context, flags, work, signal));
}

/** About a quarter of what assistants accept as one result. */
const MAX_RESULT_BYTES = 40_000;

/** A page of at most {@link MAX_RESULT_BYTES}, of fewer rows where they are large, but of one row at least. */
export async function boundedPage<Page extends { readonly data: readonly unknown[] }>(
  limit: number,
  read: (limit: number) => Promise<Page> | Page,
): Promise<Page> {
  const page = await read(limit);
  const rows = page.data.length;
  const bytes = Buffer.byteLength(JSON.stringify(page.data));
  if (bytes <= MAX_RESULT_BYTES || rows <= 1) return page;
  return boundedPage(Math.max(1, Math.floor((rows * MAX_RESULT_BYTES) / bytes)), read);
}

/** Members of a result that is a page. */
export const PAGE = {
  nextPage: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('The arguments of the call that returns the next page; absent on the last page'),
  hint: z.string().optional(),
};

/** @param nextArguments undefined: this is the last page */
export function nextPage(nextArguments: Readonly<Record<string, unknown>> | undefined) {
  const hint =
    'There are more rows. Call again with the arguments in nextPage, or narrow the request: add filters or a search, shorten the ' +
    'window, or group by fewer dimensions.';
  return nextArguments && { nextPage: nextArguments, hint };
}

/** A page of a list that the API returns whole. */
export async function listPage<Item>(
  items: readonly Item[],
  args: { readonly limit: number; readonly offset: number },
): Promise<{ readonly data: readonly Item[]; readonly total: number; readonly more: ReturnType<typeof nextPage> }> {
  const { limit, offset } = args;
  const { data } = await boundedPage(limit, (rows) => ({ data: items.slice(offset, offset + rows) }));
  const end = offset + data.length;
  return { data, total: items.length, more: nextPage(end < items.length ? { ...args, offset: end } : undefined) };
}
