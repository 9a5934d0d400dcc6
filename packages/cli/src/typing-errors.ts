/** Suggests the names that users may have meant. commander does so for commands and flags only. */
import { ALL_ACCOUNTS } from '@meterline/client';
import { closestMatch } from 'leven';
import { type CommandContext, say } from './command.js';
import type { AccountSession } from './connections/api.js';
import { printable } from './output/table.js';

/** Returns `; did you mean <name>?` with the most similar name, or '' if no name is similar. Ignores case and leading zeros. */
export function didYouMean(text: string, names: readonly string[]): string {
  const plain = (name: string) => name.toLowerCase().replace(/(?<!\d)0+(?=\d)/g, '');
  const wanted = plain(text);
  const named = new Map(names.map((name) => [plain(name), name]));
  const closest = closestMatch(wanted, [...named.keys()], { maxDistance: Math.ceil(wanted.length / 4) });
  return closest === undefined ? '' : `; did you mean ${named.get(closest)}?`;
}

/**
 * Warns about a likely typing error behind a result without usage. An operator may read any account, so the API does not reject an account
 * that does not exist. Call this after the result is printed. It never fails, because a hint must not fail a query that succeeded.
 */
export async function warnOfTypingErrors(
  context: CommandContext,
  { client, account }: Pick<AccountSession, 'client' | 'account'>,
  filter: object = {},
): Promise<void> {
  const values = Object.values(filter).flat();
  const ids =
    account === ALL_ACCOUNTS
      ? []
      : await client.accounts().then(
          (accounts) => accounts.map(({ id }) => id),
          () => [],
        );
  if (ids.length > 0 && !ids.includes(account)) {
    say(context, printable(`meterline: there is no account ${account}${didYouMean(account, ids) || '.'}`));
  } else if (values.some((value) => value !== undefined)) {
    say(context, 'meterline: if you expected usage, check the spelling of the filter values');
  }
}
