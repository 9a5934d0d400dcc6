/** GET /v0/accounts: the caller's accounts, sorted and in pages. */

import {
  applyVersion,
  type Caller,
  orAuthUnavailable,
  principalOf,
  rawQuery,
  requireReader,
  requireScope,
} from '@meterline/api';
import { ACCOUNT_LIST_PARAMETERS, ACCOUNT_SORTS } from '@meterline/catalog';
import type { Account, AccountDirectory, Role } from '@meterline/service/access';
import type { RequestHandler } from 'express';
import type { RouteDependencies } from '../http/member.js';
import { listResponse, parseListRequest } from '../http/paging.js';

const RULES = { parameters: ACCOUNT_LIST_PARAMETERS, sorts: ACCOUNT_SORTS };

export function accountsRoute({ accounts, admission, authenticate, cursors }: RouteDependencies): RequestHandler {
  return async (request, response) => {
    const caller = await authenticate(request);
    const version = applyVersion(request, response);
    requireScope(caller, 'admin');
    requireReader(caller);
    await admission.admit(principalOf(caller), response);
    const wanted = parseListRequest(rawQuery(request), version, RULES);
    const entries = await orAuthUnavailable(accountsOf(caller, accounts));
    response.json(listResponse(entries, wanted, ['accounts', caller.id], cursors));
  };
}

interface AccountEntry extends Pick<Account, 'id' | 'name'> {
  readonly role: Role;
  readonly createdAt?: string;
}

/** A token is fresher than what was registered: the platform, which issues it, owns accounts. */
async function accountsOf({ roles, accountNames }: Caller, accounts: AccountDirectory): Promise<AccountEntry[]> {
  return Promise.all(
    [...roles].map(async ([account, role]) => {
      const { id, name, createdAt } = await accounts.find(account);
      return { id, name: accountNames?.get(account) ?? name, role, ...(createdAt !== undefined && { createdAt }) };
    }),
  );
}
