/** The parameters of GET /v0/accounts. Source: the API specification, section "Limits", management lists. */
import { type ApiVersion, hasPaginatedLists } from '@meterline/catalog';
import { ACCOUNT_LIST_PARAMETERS, ACCOUNT_SORTS, type AccountSort, DEFAULT_ACCOUNT_PAGE } from '@meterline/catalog/api';
import { QueryParameters, refuseParameters } from './query-parameters.js';

export interface AccountListRequest {
  readonly sort: AccountSort;
  /** Undefined before lists were paginated: everything at once. */
  readonly page: { readonly limit: number; readonly cursor: string } | undefined;
}

const RULES = { names: Object.keys(ACCOUNT_LIST_PARAMETERS), mayBeEmpty: ['cursor'] } as const;

/** @throws ApiError `invalid_parameter` with every fault */
export function parseAccountListRequest(rawQuery: string, version: ApiVersion): AccountListRequest {
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
