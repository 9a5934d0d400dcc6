/** Builds shell commands for the user to copy: the query of a view, and the first event of an account. */
import {
  comparedWindow,
  defaultComparison,
  defaultResolution,
  formatTimestamp,
  parseTimestamp,
  type UsageEventInput,
  type Window,
  wholeMonths,
} from '@meterline/catalog/plain';
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
 * Returns a `meterline` command, which reads the key from METERLINE_API_KEY. A second command reads the previous period if no `--compare`
 * finds it: the command line cannot know that a window stands for more months than it has, such as the year to date.
 */
export function cliCommand(shared: SharedQuery): string {
  const { baseUrl, account } = shared;
  const accountFlag = account === ALL_ACCOUNTS ? '--all-accounts' : `--account ${quoted(account)}`;
  const compareFlag = compareFlagOf(shared);
  const commands = (compareFlag ? [shared.query] : queriesOf(shared)).map((query) => {
    const flags = [...flagsOf(query), ...(compareFlag ? [compareFlag] : []), '--all'];
    return ['npx --no meterline metrics', `--api-url ${quoted(baseUrl)}`, accountFlag, ...flags].join(' \\\n  ');
  });
  return commands.join('\n');
}

function windowOf({ startTime, endTime }: MetricsQuery): Window {
  const [start = 0, end = 0] = [startTime, endTime].map((time) => parseTimestamp(String(time)));
  return { startTime: start, endTime: end };
}

/** Returns the flag with which the command line finds the previous period, or undefined if there is none. */
function compareFlagOf({ query, previousQuery }: SharedQuery): string | undefined {
  if (!previousQuery) return undefined;
  const [window, previous] = [windowOf(query), windowOf(previousQuery)];
  const months = wholeMonths(window);
  const { resolution = defaultResolution(window) } = query;
  return ['--compare', '--compare=months'].find((flag) => {
    const comparison = flag === '--compare' ? defaultComparison(months) : 'months';
    const found = comparedWindow(comparison, { window, months, resolution, asOf: window.endTime });
    return found?.window.startTime === previous.startTime && found.window.endTime === previous.endTime;
  });
}

function flagsOf(query: MetricsQuery): string[] {
  const isMonth = wholeMonths(windowOf(query)) === 1;
  return [...new URLSearchParams(queryString(query))].flatMap(([name, value]) => {
    if (isMonth && name === 'startTime') return `--month ${value.slice(0, 'YYYY-MM'.length)}`;
    if (isMonth && name === 'endTime') return [];
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
