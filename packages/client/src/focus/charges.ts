/**
 * The columns of the export, and a page of metrics as charges, with what FOCUS calls the services, meters and units.
 * Source: FOCUS 1.2, https://focus.finops.org, "Columns"; ServiceCategory and ServiceSubcategory (allowed values); attribute Unit Format.
 */
import {
  type BillingDimension,
  COST_SCALE,
  csvLine,
  type DecimalText,
  DIMENSIONS,
  type EpochMs,
  formatTimestamp,
  MS_PER_DAY,
  MS_PER_HOUR,
  parseTimestamp,
  type ResourceType,
  type Unit,
  USAGE_SCALE,
  type Window,
  ZERO,
} from '@meterline/catalog/plain';
import type { MetricsResponseBy } from '../grouping.js';

/** A row for each day, or for each hour. */
export const FOCUS_RESOLUTIONS = ['daily', 'hourly'] as const;
export type FocusResolution = (typeof FOCUS_RESOLUTIONS)[number];

const FOCUS_PERIOD_MS = { daily: MS_PER_DAY, hourly: MS_PER_HOUR } as const satisfies Record<FocusResolution, number>;

/** What all charges of an export have in common. */
export interface FocusSetting {
  readonly account: { readonly id: string; readonly name: string };
  /** The provider, which publishes and invoices too. */
  readonly provider: string;
  /** A calendar month. */
  readonly month: Window;
  readonly resolution: FocusResolution;
}

/** The groups of an admin, and of a member, who may not ask for workspaces. */
export const ADMIN_GROUPS = ['workspace', 'resource_name', 'billing_dimension'] as const;
export const MEMBER_GROUPS = ['resource_name', 'billing_dimension'] as const;

export type FocusPage = MetricsResponseBy<typeof ADMIN_GROUPS> | MetricsResponseBy<typeof MEMBER_GROUPS>;

/** The charges of a page: none where nothing was used. Events that cost nothing are charges of 0. */
export function chargesOf({ data }: FocusPage, setting: FocusSetting): FocusCharge[] {
  return data.flatMap((group) => {
    const { account, provider, month, resolution } = setting;
    const { resourceName, billingDimension } = group;
    const { resourceType, unit } = DIMENSIONS[billingDimension];
    const [typeName, serviceName, category, subcategory] = FOCUS_SERVICES[resourceType];
    const meter = meterOf(billingDimension);
    const unitName = FOCUS_UNITS[unit];
    // Members may not see workspaces.
    const workspace = group.workspace ?? null;
    const place = workspace === null ? '' : ` in ${workspace}`;
    const common = {
      ...{ BillingAccountId: account.id, BillingAccountName: account.name, BillingCurrency: 'USD' },
      ...{ BillingPeriodStart: month.startTime, BillingPeriodEnd: month.endTime },
      // Meterline issues no invoices, so no charge corrects one: a late or corrected event changes the rows of its own month.
      ...{ ChargeCategory: 'Usage', ChargeClass: null, ChargeFrequency: 'Usage-Based', InvoiceId: null },
      ChargeDescription: `${meter} of ${typeName.toLowerCase().replace('mcp', 'MCP')} ${resourceName}${place}`,
      ...{ ConsumedUnit: unitName, PricingUnit: unitName },
      ...{ ProviderName: provider, PublisherName: provider, InvoiceIssuerName: provider },
      ResourceId: resourceId([account.id, ...(workspace === null ? [] : [workspace]), resourceType, resourceName]),
      ...{ ResourceName: resourceName, ResourceType: typeName },
      ...{ ServiceCategory: category, ServiceName: serviceName, ServiceSubcategory: subcategory },
      // A price list has one price for a dimension at a time.
      ...{ SkuId: billingDimension, SkuMeter: meter, SkuPriceDetails: null, SkuPriceId: billingDimension },
      ...{ SubAccountId: workspace, SubAccountName: workspace },
    };
    return group.timeseries
      .filter(({ cost, usage }) => cost !== ZERO || usage !== ZERO)
      .map(({ timestamp, cost, usage }) => ({
        ...common,
        ...chargePeriod(timestamp, resolution),
        // Nothing is discounted after its price or paid in advance, so all four costs are what the events cost.
        ...{ BilledCost: cost, ContractedCost: cost, EffectiveCost: cost, ListCost: cost },
        // Prices are of the unit that usage is measured in, so both quantities are the usage.
        ...{ ConsumedQuantity: usage, PricingQuantity: usage },
      }));
  });
}

/** Unique in the provider: parts that may hold any character, encoded as in a URL. */
function resourceId(parts: readonly string[]): string {
  return parts.map(encodeURIComponent).join('/');
}

function chargePeriod(timestamp: string, resolution: FocusResolution) {
  const start = parseTimestamp(timestamp);
  if (start === undefined) throw new RangeError(`not a time: ${timestamp}`);
  return { ChargePeriodStart: start, ChargePeriodEnd: start + FOCUS_PERIOD_MS[resolution] };
}

/** One service for each resource type: what the resource and the service are called, and the allowed values of its two categories. */
const FOCUS_SERVICES = {
  sandbox: ['Sandbox', 'Sandboxes', 'Compute', 'Containers'],
  agent: ['Agent', 'Agents', 'AI and Machine Learning', 'AI Platforms'],
  job: ['Batch Job', 'Batch Jobs', 'Compute', 'Serverless Compute'],
  mcp_server: ['MCP Server', 'MCP Servers', 'Compute', 'Serverless Compute'],
  volume: ['Volume', 'Volumes', 'Storage', 'Block Storage'],
  custom_domain: ['Custom Domain', 'Custom Domains', 'Networking', 'Application Networking'],
} as const satisfies Record<
  ResourceType,
  readonly [type: string, service: string, category: string, subcategory: string]
>;

/** What is measured: `Compute Runtime` of `mcp_server_compute_runtime_gbs`. */
function meterOf(dimension: BillingDimension): string {
  const words = dimension
    .slice(DIMENSIONS[dimension].resourceType.length)
    .replace(/_[a-z]+$/, '')
    .split('_')
    .slice(1);
  return words.map((word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`).join(' ');
}

/** In the Unit Format. */
const FOCUS_UNITS = {
  gbs: 'GB-Seconds',
  count: 'Requests',
  hours: 'Hours',
} as const satisfies Record<Unit, string>;

export const FOCUS_VERSION = '1.2';

/** The value of a cell, by type. Strings and decimals as they are written; null: there is none. */
interface CellOf {
  readonly String: string | null;
  readonly Decimal: DecimalText;
  readonly 'Date/Time': EpochMs;
}

const string = { type: 'String' } as const;
const time = { type: 'Date/Time' } as const;
/** USD. `scale`: the most digits after the point. */
const cost = { type: 'Decimal', scale: COST_SCALE } as const;
const quantity = { type: 'Decimal', scale: USAGE_SCALE } as const;

/** In the order of the specification, which is the alphabet's. */
export const FOCUS_COLUMNS = [
  { name: 'BilledCost', ...cost },
  { name: 'BillingAccountId', ...string },
  { name: 'BillingAccountName', ...string },
  { name: 'BillingCurrency', ...string },
  { name: 'BillingPeriodEnd', ...time },
  { name: 'BillingPeriodStart', ...time },
  { name: 'ChargeCategory', ...string },
  { name: 'ChargeClass', ...string },
  { name: 'ChargeDescription', ...string },
  { name: 'ChargeFrequency', ...string },
  { name: 'ChargePeriodEnd', ...time },
  { name: 'ChargePeriodStart', ...time },
  { name: 'ConsumedQuantity', ...quantity },
  { name: 'ConsumedUnit', ...string },
  { name: 'ContractedCost', ...cost },
  { name: 'EffectiveCost', ...cost },
  { name: 'InvoiceId', ...string },
  { name: 'InvoiceIssuerName', ...string },
  { name: 'ListCost', ...cost },
  { name: 'PricingQuantity', ...quantity },
  { name: 'PricingUnit', ...string },
  { name: 'ProviderName', ...string },
  { name: 'PublisherName', ...string },
  { name: 'ResourceId', ...string },
  { name: 'ResourceName', ...string },
  { name: 'ResourceType', ...string },
  { name: 'ServiceCategory', ...string },
  { name: 'ServiceName', ...string },
  { name: 'ServiceSubcategory', ...string },
  { name: 'SkuId', ...string },
  { name: 'SkuMeter', ...string },
  { name: 'SkuPriceDetails', ...string },
  { name: 'SkuPriceId', ...string },
  { name: 'SubAccountId', ...string },
  { name: 'SubAccountName', ...string },
] as const;
export type FocusColumn = (typeof FOCUS_COLUMNS)[number];

/** One charge, a row: what one resource used of one dimension in one hour or day. */
export type FocusCharge = { readonly [Column in FocusColumn as Column['name']]: CellOf[Column['type']] };

/** RFC 4180, without the guard of `metrics --csv` against formulas: FOCUS wants every name as it is. No byte order mark. */
export function focusCsvHeading(): string {
  return csvLine(
    FOCUS_COLUMNS.map(({ name }) => name),
    'plain',
  );
}

/** The lines of some charges; a null is an empty cell. */
export function focusCsvLines(charges: readonly FocusCharge[]): string {
  const cellsOf = (charge: FocusCharge) => FOCUS_COLUMNS.map(({ name }) => cellText(charge[name]));
  return charges.map((charge) => csvLine(cellsOf(charge), 'plain')).join('');
}

function cellText(cell: FocusCharge[FocusColumn['name']]): string {
  return typeof cell === 'number' ? formatTimestamp(cell) : (cell ?? '');
}
