/** The query of a view for use elsewhere: with curl, the command line, or a program. Each reads the key from METERLINE_API_KEY. */
import type { Comparison } from '@meterline/catalog';
import { ALL_ACCOUNTS, type MetricsQuery, metricsPath } from '@meterline/client';

export interface SharedQuery {
  /** Of the API: `https://billing.example.com`. */
  readonly origin: string;
  readonly account: string;
  readonly query: MetricsQuery;
  /** What the view is compared with, as a query of its own; undefined: with nothing. */
  readonly previousQuery: MetricsQuery | undefined;
  readonly comparison: Comparison | undefined;
}

export function curlCommand({ origin, account, query, previousQuery }: SharedQuery): string {
  const command = (asked: MetricsQuery) => {
    const url = `${origin}${metricsPath(account)}?${new URLSearchParams(parametersOf(asked))}`;
    return `curl -sS -H "Authorization: Bearer $METERLINE_API_KEY" \\\n  ${quoted(url)}`;
  };
  return previousQuery ? `${command(query)}\n${command(previousQuery)}` : command(query);
}

/** Names and values; names are repeated where they have several values. */
function parametersOf({ groupBy = [], ...others }: MetricsQuery): [string, string][] {
  const grouping = groupBy.length > 0 ? { groupBy: groupBy.join(',') } : {};
  return Object.entries({ ...others, ...grouping }).flatMap(([name, value]) =>
    [value ?? []].flat().map((each): [string, string] => [name, String(each)]),
  );
}

/** All other parameters are filters. */
const FLAGS: Readonly<Record<string, string>> = {
  startTime: '--from',
  endTime: '--to',
  resolution: '--resolution',
  groupBy: '--group-by',
};

export function cliCommand({ origin, account, query, comparison }: SharedQuery): string {
  const flags = parametersOf(query).map(([name, value]) => {
    if (FLAGS[name]) return `${FLAGS[name]} ${quoted(value)}`;
    const excluded = name.replace(/^exclude(.)/, (_, first: string) => first.toLowerCase());
    return `--filter ${quoted(excluded === name ? `${name}=${value}` : `${excluded}!=${value}`)}`;
  });
  const whose = account === ALL_ACCOUNTS ? '--all-accounts' : `--account ${quoted(account)}`;
  const parts = ['meterline metrics', `--api-url ${quoted(origin)}`, whose, ...flags];
  if (comparison) parts.push(`--compare ${comparison}`);
  return [...parts, '--all'].join(' \\\n  ');
}

export function typeScriptCode({ origin, account, query, previousQuery }: SharedQuery): string {
  const queries = [query, ...(previousQuery ? [previousQuery] : [])];
  const isAll = account === ALL_ACCOUNTS;
  return `import { ${isAll ? 'ALL_ACCOUNTS, ' : ''}MeterlineClient } from '@meterline/client';

const client = new MeterlineClient({
  baseUrl: ${JSON.stringify(origin)},
  credential: process.env.METERLINE_API_KEY ?? '',
});
const queries = ${JSON.stringify(queries, null, 2)} as const;
for (const query of queries) {
  for await (const page of client.metricsPages(${isAll ? 'ALL_ACCOUNTS' : JSON.stringify(account)}, query)) {
    console.log(page.startTime, page.summary.totalCost, page.data);
  }
}
`;
}

/** One word of a shell, whatever is in it. */
function quoted(text: string): string {
  return /^[\w.,:/@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
