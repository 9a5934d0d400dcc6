/** Builds shell commands for the user to copy: the query of a view, and the first event of an account. */
import { formatTimestamp, type UsageEventInput } from '@meterline/catalog/plain';
import { ALL_ACCOUNTS, type MetricsQuery, metricsPath, queryString } from '@meterline/client';

export interface SharedQuery {
  readonly baseUrl: string;
  readonly account: string;
  readonly query: MetricsQuery;
  /** The query for the previous period, or undefined if there is no comparison. */
  readonly previousQuery: MetricsQuery | undefined;
}

function queriesOf({ query, previousQuery }: SharedQuery): MetricsQuery[] {
  return previousQuery ? [query, previousQuery] : [query];
}

/** Returns a curl command, which reads the key from METERLINE_API_KEY. */
export function curlCommand(shared: SharedQuery): string {
  const { baseUrl, account } = shared;
  const commands = queriesOf(shared).map((query) => {
    const url = `${baseUrl}${metricsPath(account)}?${queryString(query)}`;
    return `curl -sS -H "Authorization: Bearer $METERLINE_API_KEY" \\\n  ${quoted(url)}`;
  });
  return commands.join('\n');
}

const FLAGS: Readonly<Record<string, string>> = {
  startTime: '--from',
  endTime: '--to',
  resolution: '--resolution',
  groupBy: '--group-by',
};

/**
 * Returns a `meterline` command, which reads the key from METERLINE_API_KEY. A second command reads the previous period. `--compare` might
 * choose another period, because the command line cannot know that a window stands for a number of months.
 */
export function cliCommand(shared: SharedQuery): string {
  const { baseUrl, account } = shared;
  const accountFlag = account === ALL_ACCOUNTS ? '--all-accounts' : `--account ${quoted(account)}`;
  const commands = queriesOf(shared).map((query) =>
    ['npx --no meterline metrics', `--api-url ${quoted(baseUrl)}`, accountFlag, ...flagsOf(query), '--all'].join(
      ' \\\n  ',
    ),
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

/** Returns an event for a sandbox that uses one gigabyte for two minutes. */
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

export function keyCommand(account: string): string {
  return `npx --no meterline keys create --account ${quoted(account)} --role emitter`;
}

/** Returns a command that sends the event with the key in KEY. The quoted delimiter keeps the shell from expanding the event. */
export function sendCommand(event: UsageEventInput, collectorUrl = '$COLLECTOR'): string {
  return `curl -sS "${collectorUrl}/v0/events" \\
  -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' --data-binary @- <<'EVENT'
${JSON.stringify(event)}
EVENT`;
}

/** Quotes a string as one word of a shell command. */
function quoted(text: string): string {
  return /^[\w.,:/@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
