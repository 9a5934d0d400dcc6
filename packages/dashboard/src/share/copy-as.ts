/**
 * The question of a view, to be asked elsewhere: with curl, the command line, or a program. The key is never part of it;
 * each reads it from METERLINE_API_KEY.
 */
import type { MetricsQuery } from '@meterline/client';

export interface SharedQuestion {
  /** Of the API: `https://billing.example.com`. */
  readonly origin: string;
  readonly account: string;
  readonly query: MetricsQuery;
}

export function curlCommand({ origin, account, query }: SharedQuestion): string {
  const url = `${origin}/v0/accounts/${encodeURIComponent(account)}/metrics?${queryText(query)}`;
  return `curl -sS -H "Authorization: Bearer $METERLINE_API_KEY" \\\n  ${quoted(url)}`;
}

/** Names are repeated where they have several values. */
function queryText(query: MetricsQuery): string {
  const text = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || (Array.isArray(value) && value.length === 0)) continue;
    if (name === 'groupBy') text.append(name, String(value));
    else for (const each of [value].flat()) text.append(name, String(each));
  }
  return text.toString();
}

const FLAGS = {
  startTime: '--from',
  endTime: '--to',
  resolution: '--resolution',
  groupBy: '--group-by',
  workspace: '--workspace',
  resourceType: '--resource-type',
  resourceName: '--resource-name',
  resourceUuid: '--resource-uuid',
  withoutResourceUuid: '--without-resource-uuid',
  billingDimension: '--billing-dimension',
} as const;
type FlagName = keyof typeof FLAGS;
/** What leaves something out has no flag of its own: `--filter name!=value`. */
const EXCLUDED = {
  excludeWorkspace: 'workspace',
  excludeResourceType: 'resourceType',
  excludeResourceName: 'resourceName',
  excludeResourceUuid: 'resourceUuid',
  excludeWithoutResourceUuid: 'withoutResourceUuid',
  excludeBillingDimension: 'billingDimension',
} as const;
type ExcludedName = keyof typeof EXCLUDED;

export function cliCommand({ origin, account, query }: SharedQuestion): string {
  const parts = ['meterline metrics', `--api-url ${quoted(origin)}`, `--account ${quoted(account)}`];
  for (const name of Object.keys(FLAGS) as FlagName[]) {
    const value = query[name];
    if (value === undefined || (Array.isArray(value) && value.length === 0)) continue;
    if (value === true) parts.push(FLAGS[name]);
    else if (name === 'groupBy') parts.push(`${FLAGS[name]} ${String(value)}`);
    else for (const each of [value].flat()) parts.push(`${FLAGS[name]} ${quoted(String(each))}`);
  }
  for (const name of Object.keys(EXCLUDED) as ExcludedName[]) {
    for (const each of [query[name] ?? []].flat()) parts.push(`--filter ${quoted(`${EXCLUDED[name]}!=${each}`)}`);
  }
  return [...parts, '--all'].join(' \\\n  ');
}

export function typeScriptCode({ origin, account, query }: SharedQuestion): string {
  const { cursor: _cursor, limit: _limit, ...asked } = query;
  return `import { MeterlineClient } from '@meterline/client';

const client = new MeterlineClient({
  baseUrl: ${JSON.stringify(origin)},
  credential: process.env.METERLINE_API_KEY ?? '',
});
const query = ${JSON.stringify(asked, null, 2)} as const;
for await (const page of client.metricsPages(${JSON.stringify(account)}, query)) {
  console.log(page.summary.totalCost, page.data);
}
`;
}

/** One word of a shell, whatever is in it. */
function quoted(text: string): string {
  return /^[\w.,:/@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
