/**
 * Exports a month as a dataset in FOCUS 1.2, a standard format for cloud costs. Reads usage page by page, writes the charges to a sink, and
 * verifies that their sum matches the total that the API reports. The command line, the web page, and programs of users call this module.
 */
import {
  addDecimals,
  type DecimalText,
  formatTimestamp,
  MS_PER_DAY,
  plusMonths,
  sumDecimals,
  timesOf,
  type Window,
  ZERO,
} from '@meterline/catalog/plain';
import type { MeterlineClient } from '../client.js';
import { MeterlineError } from '../responses.js';
import { MAX_RESTARTS, type RequestOptions } from '../transport.js';
import type { FocusCharge } from './charges.js';
import { ADMIN_GROUPS, chargesOf, type FocusResolution, type FocusSetting, MEMBER_GROUPS } from './charges.js';

export {
  FOCUS_COLUMNS,
  FOCUS_RESOLUTIONS,
  FOCUS_VERSION,
  type FocusCharge,
  type FocusColumn,
  type FocusResolution,
  focusCsvHeading,
  focusCsvLines,
} from './charges.js';

export interface FocusQuery {
  readonly account: string;
  /** The first instant of a UTC month, in epoch milliseconds. */
  readonly month: number;
  /** Default: daily. */
  readonly resolution?: FocusResolution | undefined;
  /** Name of the provider, publisher and invoice issuer. Default: {@link DEFAULT_PROVIDER}. */
  readonly provider?: string | undefined;
}

export interface FocusSink {
  /** Writes charges. The export requests the next page after the returned promise resolves. */
  write(charges: readonly FocusCharge[]): Promise<void> | void;
}

export interface FocusResult<Sink> {
  /** The sink that received all charges. After a restart, this is the last sink that `open` returned. */
  readonly sink: Sink;
  readonly rows: number;
  /** Sum of BilledCost in USD. Equals the API's `summary.totalCost` of the month. */
  readonly cost: DecimalText;
}

export const DEFAULT_PROVIDER = 'Meterline';

/** Maximum length of the window of an hourly query. The API rejects longer windows. */
const HOURLY_WINDOW_MS = 7 * MS_PER_DAY;

interface Totals {
  readonly cost: DecimalText;
  readonly usage: DecimalText;
}

export class FocusChanged extends Error {
  override readonly name = 'FocusChanged';
}

/**
 * Writes every charge of the month exactly once, from one consistent state of the data.
 * At daily resolution, one query returns the whole month. At hourly resolution, each week is a separate query. The current week is read
 * last. The export then checks that the totals of the earlier queries have not changed. If data changes while it is read, the export
 * restarts with a new sink, at most twice.
 * @param open returns an empty sink. A second call means that the previous sink is incomplete and must be discarded.
 * @throws MeterlineError, MeterlineConnectionError like the client's methods
 * @throws RangeError if `month` is not the start of a month
 * @throws FocusChanged if the month changes during every attempt
 * @throws Error if the charges do not match the total of the API (a bug)
 */
export async function exportFocus<Sink extends FocusSink>(
  client: MeterlineClient,
  { account: id, month: startTime, resolution = 'daily', provider = DEFAULT_PROVIDER }: FocusQuery,
  open: () => Promise<Sink> | Sink,
  options: RequestOptions = {},
): Promise<FocusResult<Sink>> {
  if (!formatTimestamp(startTime).endsWith('-01T00:00:00Z'))
    throw new RangeError('month must be the first instant of a UTC month, such as Date.UTC(2026, 10)');
  const month = { startTime, endTime: plusMonths(startTime, 1) };
  const account = (await client.accounts(options)).find((each) => each.id === id);
  const setting = { account: { id, name: account?.name ?? id }, provider, month, resolution };
  // Only members may not group by workspace. For an unknown role, group by it too: if the API rejects that, the export fails, instead of
  // silently omitting a column.
  const groupBy = account?.role === 'member' ? MEMBER_GROUPS : ADMIN_GROUPS;
  for (let attempt = 1; ; attempt += 1) {
    const sink = await open();
    try {
      return { sink, ...(await writeMonth(client, setting, groupBy, sink, options)) };
    } catch (error) {
      if (!hasChanged(error)) throw error;
      if (attempt <= MAX_RESTARTS) continue;
      const name = formatTimestamp(startTime).slice(0, 7);
      throw new FocusChanged(`${name} kept changing while it was read; try again when fewer events arrive`, {
        cause: error,
      });
    }
  }
}

function hasChanged(error: unknown): boolean {
  return error instanceof FocusChanged || (error instanceof MeterlineError && error.code === 'cursor_expired');
}

type Groups = typeof ADMIN_GROUPS | typeof MEMBER_GROUPS;

async function writeMonth(
  client: MeterlineClient,
  setting: FocusSetting,
  groupBy: Groups,
  sink: FocusSink,
  options: RequestOptions,
): Promise<{ rows: number; cost: DecimalText }> {
  const windows = windowsOf(setting.month, setting.resolution, Date.now());
  const written: Totals[] = [];
  let rows = 0;
  for (const window of windows) {
    let sums: Totals = { cost: ZERO, usage: ZERO };
    let totals = sums;
    const query = { ...timesOf(window), resolution: setting.resolution, groupBy };
    for await (const page of client.metricsPages(setting.account.id, query, options)) {
      const charges = chargesOf(page, setting);
      await sink.write(charges);
      rows += charges.length;
      sums = {
        cost: addDecimals(sums.cost, sumDecimals(charges.map(({ BilledCost }) => BilledCost))),
        usage: addDecimals(sums.usage, sumDecimals(charges.map(({ ConsumedQuantity }) => ConsumedQuantity))),
      };
      totals = { cost: page.summary.totalCost, usage: page.summary.totalUsage };
    }
    if (!areEqual(sums, totals)) {
      throw new Error(
        `the rows add up to ${sums.cost} USD, but the API returned ${totals.cost}; please report this bug`,
      );
    }
    written.push(sums);
  }
  // Read the totals of the earlier windows again. If they are unchanged, all windows show the state at the time of the last query.
  for (const [index, window] of windows.slice(0, -1).entries()) {
    const query = { ...timesOf(window), groupBy: ['billing_dimension'] } as const;
    const { summary } = await client.metrics(setting.account.id, query, options);
    const now = { cost: summary.totalCost, usage: summary.totalUsage };
    if (!areEqual(now, written[index])) throw new FocusChanged('a week changed after it was read');
  }
  return { rows, cost: sumDecimals(written.map(({ cost }) => cost)) };
}

/** Splits the month into weeks. The current week comes last, because only the last window may change after the export has read it. */
function windowsOf({ startTime, endTime }: Window, resolution: FocusResolution, now: number): Window[] {
  if (resolution === 'daily') return [{ startTime, endTime }];
  const windows: Window[] = [];
  for (let start = startTime; start < endTime; start += HOURLY_WINDOW_MS) {
    windows.push({ startTime: start, endTime: Math.min(start + HOURLY_WINDOW_MS, endTime) });
  }
  const isCurrent = (week: Window) => week.startTime <= now && now < week.endTime;
  return [...windows.filter((week) => !isCurrent(week)), ...windows.filter(isCurrent)];
}

function areEqual(a: Totals, b: Totals | undefined): boolean {
  return a.cost === b?.cost && a.usage === b.usage;
}
