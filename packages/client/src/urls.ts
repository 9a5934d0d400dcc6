/** Where requests go. */
import type { EventsQuery, Instant, MetricsQuery } from '@meterline/catalog';
import { NO_ACCOUNT_PATH } from '@meterline/catalog/plain';

/**
 * In place of an account: all that the caller may read, in one answer. Such a query may group by `account`, and filter with
 * `account` and `excludeAccount`. No account is called so: a name has no control characters.
 */
export const ALL_ACCOUNTS = '\0all accounts';

/** Where the API has the metrics of an account, or of all. */
export function metricsPath(account: string): string {
  return account === ALL_ACCOUNTS ? '/v0/metrics' : `${accountPath(account)}/metrics`;
}

export function accountPath(account: string): string {
  return `/v0/accounts/${pathSegment(account)}`;
}

export function apiKeysPath(clientId: string): string {
  return `/v0/service_accounts/${pathSegment(clientId)}/api_keys`;
}

/** @throws TypeError for a name that would make it the path of something else */
function pathSegment(name: string): string {
  if (NO_ACCOUNT_PATH.test(name)) throw new TypeError(`no address can have ${JSON.stringify(name)} in its path`);
  return encodeURIComponent(name);
}

/** The query string without its question mark. Undefined parameters are left out; an empty text is sent. */
export function questionString({ groupBy = [], ...others }: MetricsQuery & EventsQuery): string {
  return queryString({ ...others, groupBy: groupBy.join(',') || undefined });
}

type Value = Instant | number | boolean;

/** Several values of a parameter are sent one by one. */
export function queryString(parameters: Readonly<Record<string, Value | readonly Value[] | undefined>>): string {
  const sent = new URLSearchParams();
  for (const [name, value = []] of Object.entries(parameters)) {
    for (const each of [value].flat()) sent.append(name, each instanceof Date ? each.toISOString() : String(each));
  }
  return sent.toString();
}
