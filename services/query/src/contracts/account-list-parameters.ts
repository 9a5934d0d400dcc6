/** The parameters of GET /v0/accounts. Source: the API specification, section "Limits", management lists. */
import { type ApiVersion, hasPaginatedLists } from '@meterline/catalog';
import { z } from 'zod';
import { pageSize } from './page-size.js';
import { QueryParameters, refuseParameters } from './query-parameters.js';

export const ACCOUNT_SORTS = ['createdAt:desc', 'createdAt:asc', 'name:asc', 'name:desc'] as const;
export type AccountSort = (typeof ACCOUNT_SORTS)[number];

const DEFAULT_PAGE = 50;
const MAX_PAGE = 200;

export interface AccountListRequest {
  readonly sort: AccountSort;
  /** Undefined before lists were paginated: everything at once. */
  readonly page: { readonly limit: number; readonly cursor: string } | undefined;
}

const RULES = { names: ['limit', 'cursor', 'sort'], mayBeEmpty: ['cursor'] } as const;
const sortOrder = z.enum(ACCOUNT_SORTS, { error: `must be one of ${ACCOUNT_SORTS.join(', ')}` });

/** @throws ApiError `invalid_parameter` with every fault */
export function parseAccountListRequest(rawQuery: string, version: ApiVersion): AccountListRequest {
  if (!hasPaginatedLists(version)) {
    refuseParameters(rawQuery);
    return { sort: ACCOUNT_SORTS[0], page: undefined };
  }
  const parameters = new QueryParameters(rawQuery, RULES);
  const limit = parameters.optional('limit', pageSize(MAX_PAGE)) ?? DEFAULT_PAGE;
  const cursor = parameters.optional('cursor', z.string()) ?? '';
  const sort = parameters.optional('sort', sortOrder) ?? ACCOUNT_SORTS[0];
  if (!parameters.areValid) throw parameters.refusal();
  return { sort, page: { limit, cursor } };
}
