/** GET /v0/accounts */
import type { AccountDirectory } from '@meterline/access';
import type { RequestHandler } from 'express';
import {
  type AccountEntry,
  accountPosition,
  accountsAfter,
  positionOf,
  sortAccounts,
} from '../accounts/account-list.js';
import type { Authenticate } from '../auth/authenticate.js';
import { requireScope } from '../auth/authorise.js';
import type { Caller } from '../auth/caller.js';
import { parseAccountListRequest } from '../contracts/account-list-parameters.js';
import { applyVersion } from '../contracts/version.js';
import { accessAnswer } from '../http/outages.js';
import { rawQuery } from '../http/request-checks.js';
import type { CursorCodec } from '../paging/cursor-codec.js';

export interface AccountsRouteDependencies {
  readonly accounts: AccountDirectory;
  readonly authenticate: Authenticate;
  readonly clock: () => Date;
  readonly cursors: CursorCodec;
}

export function accountsRoute({ accounts, authenticate, clock, cursors }: AccountsRouteDependencies): RequestHandler {
  return async (request, response) => {
    const caller = await authenticate(request);
    const version = applyVersion(request, response);
    requireScope(caller, 'admin');
    const { sort, page } = parseAccountListRequest(rawQuery(request), version);
    const binding = ['accounts', caller.id, sort];
    const after = page && page.cursor !== '' ? cursors.open(page.cursor, binding, accountPosition) : undefined;

    const sorted = sortAccounts(await accessAnswer(accountsOf(caller, accounts, clock())), sort);
    if (!page) {
      response.json(sorted);
      return;
    }
    const rest = accountsAfter(sorted, after, sort);
    const data = rest.slice(0, page.limit);
    const last = data.at(-1);
    const hasMore = rest.length > data.length;
    const nextCursor = hasMore && last ? cursors.issue(binding, positionOf(last, sort)) : '';
    response.json({ data, meta: { hasMore, nextCursor, total: sorted.length } });
  };
}

async function accountsOf({ roles }: Caller, accounts: AccountDirectory, now: Date): Promise<AccountEntry[]> {
  return Promise.all(
    [...roles].map(async ([account, role]) => {
      const { id, name, createdAt } = await accounts.register(account, now);
      return { id, name, role, createdAt };
    }),
  );
}
