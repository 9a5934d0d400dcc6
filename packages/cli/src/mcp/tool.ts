/** Registers tools, converts errors to results, and limits the size of results. */
import type { McpServer } from '@modelcontextprotocol/server';
import { CommanderError } from 'commander';
import type { z } from 'zod';
import { type CommandContext, say } from '../command.js';
import { type AccountSession, withAccount } from '../connections/api.js';
import { CommandError } from '../failure.js';
import type { ApiFlags } from '../settings.js';

export interface Call {
  readonly context: CommandContext;
  readonly flags: ApiFlags;
  readonly now: Date;
  /** Aborted if the client cancels the call or disconnects. */
  readonly signal: AbortSignal;
}

interface Tool<Input extends z.ZodType> {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: Input;
  readonly run: (call: Call, args: z.output<Input>) => Promise<Record<string, unknown>>;
}

/** Matches the flags in error messages. They are replaced with argument names, because tools have arguments instead of flags. */
const FLAGS =
  /'?--(account|all-accounts|compare|cursor|filter|from|group-by|limit|month|order-by|order|resolution|to)\b(?: <[^>]+>)?'?/g;

/** Registers a tool. The assistant gets expected errors, such as errors of the API, as results. Bugs are also logged to stderr. */
export function addTool<Input extends z.ZodType>(
  server: McpServer,
  { context, flags }: Pick<Call, 'context' | 'flags'>,
  { name, run, ...tool }: Tool<Input>,
): void {
  const inputSchema: z.ZodType = tool.inputSchema;
  const annotations = { readOnlyHint: true, openWorldHint: false };
  server.registerTool(name, { ...tool, inputSchema, annotations }, async (args, { mcpReq: { signal } }) => {
    try {
      const call = { context, flags, now: context.now(), signal };
      const structuredContent = await run(call, tool.inputSchema.parse(args));
      return { content: [{ type: 'text', text: JSON.stringify(structuredContent) }], structuredContent };
    } catch (error) {
      const isExpected = error instanceof CommandError || error instanceof CommanderError;
      if (!isExpected && !signal.aborted) say(context, `meterline: ${error instanceof Error ? error.stack : error}`);
      if (!isExpected) throw error;
      const text = error.message
        .replace(FLAGS, (_, flag: string) => flag.replace(/-./g, ([, letter = '']) => letter.toUpperCase()))
        .replace('"meterline accounts"', 'list_accounts')
        .replace(/^choose an account with account/, '$&, or call query_usage with allAccounts: true');
      return { content: [{ type: 'text', text }], isError: true };
    }
  });
}

export function forAccount<Result>(
  { context, flags, signal }: Call,
  named: ApiFlags & { readonly allAccounts?: boolean | undefined },
  work: (session: AccountSession) => Promise<Result>,
): Promise<Result> {
  return withAccount(context, { ...flags, ...named }, work, signal);
}

/** About a quarter of the largest tool result that common AI assistants accept. */
const MAX_RESULT_BYTES = 40_000;

/** Reads a page of at most {@link MAX_RESULT_BYTES}. Reads fewer rows if the rows are large, but at least one row. */
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

export async function listPage<Item>(
  items: readonly Item[],
  args: { readonly limit: number; readonly offset: number },
) {
  const { limit, offset } = args;
  const { data } = await boundedPage(limit, (rows) => ({ data: items.slice(offset, offset + rows) }));
  const end = offset + data.length;
  return { data, total: items.length, ...nextPage(end < items.length ? { ...args, offset: end } : undefined) };
}

export function nextPage(args: Readonly<Record<string, unknown>> | undefined) {
  const hint =
    'There are more rows. Call again with the arguments in nextPage, or narrow the request: add filters or a search, shorten ' +
    'the window, or group by fewer dimensions.';
  return args ? { nextPage: args, hint } : {};
}
