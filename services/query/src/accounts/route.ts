/** GET /v0/accounts: the caller's accounts, sorted and in pages. Source: the API specification, section "Limits". */
import type { Account, AccountDirectory, Role } from '@meterline/access';
import { type ApiVersion, hasPaginatedLists } from '@meterline/catalog';
import { ACCOUNT_LIST_PARAMETERS, ACCOUNT_SORTS, type AccountSort, DEFAULT_ACCOUNT_PAGE } from '@meterline/catalog/api';
import type { RequestHandler } from 'express';
import { z } from 'zod';
import { type Authenticate, type Caller, requireScope } from '../auth/authenticate.js';
import type { CursorCodec } from '../http/cursor-codec.js';
import { orAuthUnavailable } from '../http/errors.js';
import { QueryParameters, refuseParameters } from '../http/query-parameters.js';
import { applyVersion, rawQuery } from '../http/request-checks.js';

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
    const { sort, page } = parseRequest(rawQuery(request), version);
    const binding = ['accounts', caller.id, sort];
    const after = page && page.cursor !== '' ? cursors.open(page.cursor, binding, accountPosition) : undefined;

    const sorted = sortAccounts(await orAuthUnavailable(accountsOf(caller, accounts, clock())), sort);
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

interface AccountEntry extends Account {
  readonly role: Role;
}

async function accountsOf({ roles }: Caller, accounts: AccountDirectory, now: Date): Promise<AccountEntry[]> {
  return Promise.all(
    [...roles].map(async ([account, role]) => {
      const { id, name, createdAt } = await accounts.register(account, now);
      return { id, name, role, createdAt };
    }),
  );
}

interface AccountListRequest {
  readonly sort: AccountSort;
  /** Undefined before lists were paginated: everything at once. */
  readonly page: { readonly limit: number; readonly cursor: string } | undefined;
}

const RULES = { names: Object.keys(ACCOUNT_LIST_PARAMETERS), mayBeEmpty: ['cursor'] } as const;

/** @throws ApiError `invalid_parameter` with every fault */
function parseRequest(rawQuery: string, version: ApiVersion): AccountListRequest {
  if (!hasPaginatedLists(version)) {
    refuseParameters(rawQuery);
    return { sort: ACCOUNT_SORTS[0], page: undefined };
  }
  const parameters = new QueryParameters(rawQuery, RULES);
  const limit = parameters.optional('limit', ACCOUNT_LIST_PARAMETERS.limit) ?? DEFAULT_ACCOUNT_PAGE;
  const cursor = parameters.optional('cursor', ACCOUNT_LIST_PARAMETERS.cursor) ?? '';
  const sort = parameters.optional('sort', ACCOUNT_LIST_PARAMETERS.sort) ?? ACCOUNT_SORTS[0];
  if (!parameters.areValid) throw parameters.refusal();
  return { sort, page: { limit, cursor } };
}

/** An account's place in a sorted list. */
const accountPosition = z.object({ key: z.string(), id: z.string() });
type AccountPosition = z.output<typeof accountPosition>;

function positionOf(account: AccountEntry, sort: AccountSort): AccountPosition {
  return { key: sort.startsWith('name') ? account.name : account.createdAt, id: account.id };
}

/** Sorted by the asked key, in its direction, then by id. */
function sortAccounts(accounts: readonly AccountEntry[], sort: AccountSort): AccountEntry[] {
  return [...accounts].sort((a, b) => comparePositions(positionOf(a, sort), positionOf(b, sort), sort));
}

/** The accounts that follow a position in a sorted list; all of them without one. */
function accountsAfter(
  sorted: readonly AccountEntry[],
  position: AccountPosition | undefined,
  sort: AccountSort,
): readonly AccountEntry[] {
  if (!position) return sorted;
  return sorted.filter((account) => comparePositions(positionOf(account, sort), position, sort) > 0);
}

function comparePositions(a: AccountPosition, b: AccountPosition, sort: AccountSort): number {
  const byKey = compareText(a.key, b.key);
  return (sort.endsWith(':desc') ? -byKey : byKey) || compareText(a.id, b.id);
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
