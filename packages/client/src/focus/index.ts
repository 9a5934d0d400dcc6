/**
 * A month as a FOCUS 1.2 data set, for the command line, the web page and other people's programs: it is read, and its charges are given
 * to a sink, a page at a time, with proof that nothing is missing.
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
import { MOST_RESTARTS, type RequestOptions } from '../transport.js';
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
  /** The provider's name, which stands for publisher and invoice issuer too. Default: {@link DEFAULT_PROVIDER}. */
  readonly provider?: string | undefined;
}

/** Where charges go. */
export interface FocusSink {
  /** Awaited before the next page is asked for. */
  write(charges: readonly FocusCharge[]): Promise<void> | void;
}

export interface FocusResult<Sink> {
  /** The one that has all charges. */
  readonly sink: Sink;
  readonly rows: number;
  /** USD: the sum of BilledCost, and `summary.totalCost` of the month. */
  readonly cost: DecimalText;
}

export const DEFAULT_PROVIDER = 'Meterline';

/** The API's longest window of hours. */
const HOURLY_WINDOW_MS = 7 * MS_PER_DAY;

/** The sums of what was written, or of what the API says. */
interface Totals {
  readonly cost: DecimalText;
  readonly usage: DecimalText;
}

/** The month changed while it was read. */
export class FocusChanged extends Error {
  override readonly name = 'FocusChanged';
}

/**
 * Writes every charge of the month once. Days are one response, so they are of one moment. Hours are a response for each week, the
 * week that is under way last, and when that is read the others must still cost what they did. If a response changes while it is
 * read, all begins again with another sink, twice at most.
 *
 * @param open makes an empty sink; those that came before it are of no use any more
 * @throws MeterlineError, MeterlineConnectionError as the client's calls
 * @throws RangeError when `month` is none
 * @throws FocusChanged when the month kept changing
 * @throws Error when the rows do not add up to what the API says: a defect
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
  const known = (await client.accounts(options)).find((account) => account.id === id);
  const setting = { account: { id, name: known?.name ?? id }, provider, month, resolution };
  // If the API rejects workspaces, the export fails; it never lacks a column silently.
  const groupBy = known?.role === 'member' ? MEMBER_GROUPS : ADMIN_GROUPS;
  for (let attempt = 1; ; attempt += 1) {
    const sink = await open();
    try {
      return { sink, ...(await writeMonth(client, setting, groupBy, sink, options)) };
    } catch (error) {
      if (!hasChanged(error)) throw error;
      if (attempt <= MOST_RESTARTS) continue;
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
      throw new Error(`the rows add up to ${sums.cost} USD, but the API says ${totals.cost}: please report this`);
    }
    written.push(sums);
  }
  // After the last window: together they are what the month was when that was read.
  for (const [index, window] of windows.slice(0, -1).entries()) {
    const query = { ...timesOf(window), groupBy: ['billing_dimension'] } as const;
    const { summary } = await client.metrics(setting.account.id, query, options);
    const now = { cost: summary.totalCost, usage: summary.totalUsage };
    if (!areEqual(now, written[index])) throw new FocusChanged('a week changed after it was read');
  }
  return { rows, cost: sumDecimals(written.map(({ cost }) => cost)) };
}

/** The week that is under way comes last: events arrive for it all the time, and what is read last may change afterwards. */
function windowsOf({ startTime, endTime }: Window, resolution: FocusResolution, now: number): Window[] {
  if (resolution === 'daily') return [{ startTime, endTime }];
  const windows: Window[] = [];
  for (let start = startTime; start < endTime; start += HOURLY_WINDOW_MS) {
    windows.push({ startTime: start, endTime: Math.min(start + HOURLY_WINDOW_MS, endTime) });
  }
  const isUnderWay = (week: Window) => week.startTime <= now && now < week.endTime;
  return [...windows.filter((week) => !isUnderWay(week)), ...windows.filter(isUnderWay)];
}

function areEqual(a: Totals, b: Totals | undefined): boolean {
  return a.cost === b?.cost && a.usage === b.usage;
}
