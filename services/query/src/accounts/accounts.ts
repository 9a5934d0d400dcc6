/** GET /v0/accounts: the caller's accounts, sorted and in pages. */

import { type Caller, orAuthUnavailable, rawQuery } from '@meterline/api';
import { ACCOUNT_LIST_PARAMETERS, ACCOUNT_SORTS } from '@meterline/catalog';
import type { Account, AccountDirectory, Role } from '@meterline/service/access';
import type { RequestHandler } from 'express';
import { admitCaller, type RouteDependencies } from '../http/member.js';
import { listResponse, parseListRequest } from '../http/paging.js';

const RULES = { parameters: ACCOUNT_LIST_PARAMETERS, sorts: ACCOUNT_SORTS };

export function accountsRoute(dependencies: RouteDependencies): RequestHandler {
  const { accounts, cursors } = dependencies;
  return async (request, response) => {
    const { caller, version } = await admitCaller(dependencies, request, response);
    const wanted = parseListRequest(rawQuery(request), version, RULES);
    const entries = await orAuthUnavailable(accountsOf(caller, accounts));
    response.json(listResponse(entries, wanted, ['accounts', caller.id], cursors));
  };
}

interface AccountEntry extends Pick<Account, 'id' | 'name'> {
  readonly role: Role;
  readonly createdAt?: string;
}

/**
 * An operator's are those that are registered. A token is fresher than what was registered: the platform, which issues it, owns
 * accounts.
 */
async function accountsOf(
  { roles, accountNames, isOperator }: Caller,
  accounts: AccountDirectory,
): Promise<AccountEntry[]> {
  const all = isOperator ? await accounts.list() : [];
  return Promise.all(
    [...roles, ...all.map((account) => [account, 'admin'] as const)].map(async ([account, role]) => {
      const { id, name, createdAt } = await accounts.find(account);
      return { id, name: accountNames?.get(account) ?? name, role, ...(createdAt !== undefined && { createdAt }) };
    }),
  );
}
