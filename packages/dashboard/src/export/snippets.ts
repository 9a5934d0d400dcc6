/**
 * What the page shows for use elsewhere: the query of a view with curl, the command line, or a program, each of which reads the key from
 * METERLINE_API_KEY; and what sends an account its first event.
 */
import { formatTimestamp, type UsageEventInput } from '@meterline/catalog/plain';
import { ALL_ACCOUNTS, type MetricsQuery, metricsPath, queryString } from '@meterline/client';

export interface SharedQuery {
  /** The address of the API: `https://billing.example.com`. */
  readonly baseUrl: string;
  readonly account: string;
  readonly query: MetricsQuery;
  /** What the view is compared with, as a query of its own; undefined: with nothing. */
  readonly previousQuery: MetricsQuery | undefined;
}

/** The query, and what it is compared with. */
function queriesOf({ query, previousQuery }: SharedQuery): MetricsQuery[] {
  return previousQuery ? [query, previousQuery] : [query];
}

export function curlCommand(shared: SharedQuery): string {
  const { baseUrl, account } = shared;
  const commands = queriesOf(shared).map((query) => {
    const url = `${baseUrl}${metricsPath(account)}?${queryString(query)}`;
    return `curl -sS -H "Authorization: Bearer $METERLINE_API_KEY" \\\n  ${quoted(url)}`;
  });
  return commands.join('\n');
}

/** All other parameters are filters. */
const FLAGS: Readonly<Record<string, string>> = {
  startTime: '--from',
  endTime: '--to',
  resolution: '--resolution',
  groupBy: '--group-by',
};

/** What it is compared with is a command of its own: `--compare` is given two times, and not the months that a period is meant as. */
export function cliCommand(shared: SharedQuery): string {
  const { baseUrl, account } = shared;
  const whose = account === ALL_ACCOUNTS ? '--all-accounts' : `--account ${quoted(account)}`;
  const commands = queriesOf(shared).map((query) =>
    ['npx --no meterline metrics', `--api-url ${quoted(baseUrl)}`, whose, ...flagsOf(query), '--all'].join(' \\\n  '),
  );
  return commands.join('\n');
}

function flagsOf(query: MetricsQuery): string[] {
  return [...new URLSearchParams(queryString(query))].map(([name, value]) => {
    if (FLAGS[name]) return `${FLAGS[name]} ${quoted(value)}`;
    const excluded = name.replace(/^exclude(.)/, (_, first: string) => first.toLowerCase());
    return `--filter ${quoted(excluded === name ? `${name}=${value}` : `${excluded}!=${value}`)}`;
  });
}

export function typeScriptCode(shared: SharedQuery): string {
  const { baseUrl, account } = shared;
  const isAll = account === ALL_ACCOUNTS;
  return `import { ${isAll ? 'ALL_ACCOUNTS, ' : ''}MeterlineClient } from '@meterline/client';

const client = new MeterlineClient({
  baseUrl: ${JSON.stringify(baseUrl)},
  credential: process.env.METERLINE_API_KEY ?? '',
});
const queries = ${JSON.stringify(queriesOf(shared), null, 2)} as const;
for (const query of queries) {
  for await (const page of client.metricsPages(${isAll ? 'ALL_ACCOUNTS' : JSON.stringify(account)}, query)) {
    console.log(page.startTime, page.summary.totalCost, page.data);
  }
}
`;
}

/** Two minutes of a sandbox with one gigabyte. */
export function firstEvent(accountId: string, now: Date): UsageEventInput {
  return {
    eventId: `first-event-${now.getTime()}`,
    accountId,
    workspace: 'production',
    resourceType: 'sandbox',
    resourceName: 'my-sandbox',
    billingDimension: 'sandbox_compute_runtime_gbs',
    usage: '120',
    timestamp: formatTimestamp(now.getTime() - (now.getTime() % 1_000)),
  };
}

/** Makes the key that the others need in KEY. */
export function keyCommand(account: string): string {
  return `npx --no meterline keys create --account ${quoted(account)} --role emitter`;
}

/**
 * A here-document with a quoted end, so that the shell changes nothing in it.
 * @param collectorUrl undefined: it is not known, and is to be in COLLECTOR
 */
export function sendCommand(event: UsageEventInput, collectorUrl = '$COLLECTOR'): string {
  return `curl -sS "${collectorUrl}/v0/events" \\
  -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' --data-binary @- <<'EVENT'
${JSON.stringify(event)}
EVENT`;
}

/** What `sendCommand` sends, as a program; the emitter gives each event its id and its time. */
export function producerCode({ eventId: _, timestamp: __, ...event }: UsageEventInput, collectorUrl?: string): string {
  const url = collectorUrl === undefined ? 'process.env.COLLECTOR' : `'${collectorUrl}'`;
  return `import { openEmitter } from '@meterline/emitter';

const meter = await openEmitter({ url: ${url}, apiKey: process.env.KEY });
meter.record(${JSON.stringify(event, null, 2)});
await meter.close();`;
}

/** The text as one word of a shell, whatever is in it. */
function quoted(text: string): string {
  return /^[\w.,:/@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
