/** GET /v0/accounts: the caller's accounts, sorted and in pages. */

import type { Account, AccountDirectory, Role } from '@meterline/access';
import {
  type Authenticate,
  applyVersion,
  type Caller,
  orAuthUnavailable,
  partyOf,
  rawQuery,
  requireReader,
  requireScope,
} from '@meterline/api';
import { ACCOUNT_LIST_PARAMETERS, ACCOUNT_SORTS } from '@meterline/catalog/api';
import type { RequestHandler } from 'express';
import type { Admission } from '../admission/admission.js';
import type { CursorCodec } from '../http/cursor-codec.js';
import { listAnswer, parseListRequest } from '../http/lists.js';

export interface AccountsRouteDependencies {
  readonly accounts: AccountDirectory;
  readonly admission: Admission;
  readonly authenticate: Authenticate;
  readonly cursors: CursorCodec;
}

const RULES = { parameters: ACCOUNT_LIST_PARAMETERS, sorts: ACCOUNT_SORTS };

export function accountsRoute({
  accounts,
  admission,
  authenticate,
  cursors,
}: AccountsRouteDependencies): RequestHandler {
  return async (request, response) => {
    const caller = await authenticate(request);
    const version = applyVersion(request, response);
    requireScope(caller, 'admin');
    requireReader(caller);
    await admission.enter(partyOf(caller), response, false);
    const asked = parseListRequest(rawQuery(request), version, RULES);
    const entries = await orAuthUnavailable(accountsOf(caller, accounts));
    response.json(listAnswer(entries, asked, ['accounts', caller.id], cursors));
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
