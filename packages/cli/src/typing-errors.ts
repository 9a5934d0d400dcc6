/** Suggests the names that users may have meant. commander does so for commands and flags only. */
import { ALL_ACCOUNTS } from '@meterline/client';
import { type CommandContext, say } from './command.js';
import type { AccountSession } from './connections/api.js';

/** Returns `; did you mean <name>?` with the most similar name, or '' if no name is similar. Ignores case and leading zeros. */
export function didYouMean(text: string, names: readonly string[]): string {
  const plain = (name: string) => name.toLowerCase().replace(/(?<!\d)0+(?=\d)/g, '');
  const wanted = plain(text);
  let [best, fewest] = ['', Math.ceil(wanted.length / 4) + 1];
  for (const name of names) {
    const edits = editsBetween(wanted, plain(name));
    if (edits < fewest) [best, fewest] = [name, edits];
  }
  return best && `; did you mean ${best}?`;
}

/** Returns the Levenshtein distance. */
function editsBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const character of a) {
    const next = [(row[0] ?? 0) + 1];
    for (let at = 0; at < b.length; at += 1) {
      const replaced = (row[at] ?? 0) + (character === b[at] ? 0 : 1);
      next.push(Math.min((row[at + 1] ?? 0) + 1, (next[at] ?? 0) + 1, replaced));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}

/**
 * Warns about a likely typing error behind a result without usage. An operator may read any account, so the API does not reject an account
 * that does not exist.
 */
export async function warnOfTypingErrors(
  context: CommandContext,
  { client, account }: Pick<AccountSession, 'client' | 'account'>,
  filter: object = {},
): Promise<void> {
  const values = Object.values(filter).flat();
  const ids = account === ALL_ACCOUNTS ? [account] : (await client.accounts()).map(({ id }) => id);
  if (!ids.includes(account)) {
    say(context, `meterline: there is no account ${account}${didYouMean(account, ids) || '.'}`);
  } else if (values.some((value) => value !== undefined)) {
    say(context, 'meterline: if you expected usage, check the spelling of the filter values');
  }
}
