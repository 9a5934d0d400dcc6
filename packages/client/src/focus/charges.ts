/**
 * Converts a page of metrics into FOCUS charges, and renders them as CSV.
 * Source: FOCUS 1.2, https://focus.finops.org, "Columns"; ServiceCategory and ServiceSubcategory (allowed values); attribute Unit Format.
 */
import {
  type BillingDimension,
  type BuiltInResourceType,
  type BuiltInUnit,
  COST_SCALE,
  csvLine,
  type DecimalText,
  type EpochMs,
  formatTimestamp,
  MS_PER_DAY,
  MS_PER_HOUR,
  parseTimestamp,
  type ResourceType,
  type Unit,
  USAGE_SCALE,
  unitOf,
  type Window,
  ZERO,
} from '@meterline/catalog/plain';
import type { MetricsResponseBy } from '../grouping.js';

export const FOCUS_RESOLUTIONS = ['daily', 'hourly'] as const;
export type FocusResolution = (typeof FOCUS_RESOLUTIONS)[number];

const FOCUS_PERIOD_MS = { daily: MS_PER_DAY, hourly: MS_PER_HOUR } as const satisfies Record<FocusResolution, number>;

export interface FocusSetting {
  readonly account: { readonly id: string; readonly name: string };
  /** Name of the provider. The export uses it as the publisher and the invoice issuer, too. */
  readonly provider: string;
  readonly month: Window;
  readonly resolution: FocusResolution;
}

/** The `groupBy` of an export depends on the role, because members are not allowed to group by workspace. */
export const ADMIN_GROUPS = ['workspace', 'resource_name', 'billing_dimension'] as const;
export const MEMBER_GROUPS = ['resource_name', 'billing_dimension'] as const;

export type FocusPage = MetricsResponseBy<typeof ADMIN_GROUPS> | MetricsResponseBy<typeof MEMBER_GROUPS>;

/** Returns the charges of a page: one charge per group and period with usage. Free usage becomes a charge with a cost of 0. */
export function chargesOf({ data }: FocusPage, setting: FocusSetting): FocusCharge[] {
  return data.flatMap((group) => {
    const { account, provider, month, resolution } = setting;
    const { resourceName, billingDimension, resourceType = '' } = group;
    const [typeName, serviceName, category, subcategory] = FOCUS_SERVICES[resourceType] ?? otherService(resourceType);
    const meter = meterOf(billingDimension, resourceType);
    const unit = unitOf(billingDimension);
    const unitName = FOCUS_UNITS[unit] ?? titled(unit);
    const workspace = group.workspace ?? null;
    const location = workspace === null ? '' : ` in ${workspace}`;
    const common = {
      ...{ BillingAccountId: account.id, BillingAccountName: account.name, BillingCurrency: 'USD' },
      ...{ BillingPeriodStart: month.startTime, BillingPeriodEnd: month.endTime },
      // ChargeClass marks corrections of invoices. Meterline issues no invoices: corrected events change the charges of their month.
      ...{ ChargeCategory: 'Usage', ChargeClass: null, ChargeFrequency: 'Usage-Based', InvoiceId: null },
      ChargeDescription: `${meter} of ${typeName.toLowerCase().replace('mcp', 'MCP')} ${resourceName}${location}`,
      ...{ ConsumedUnit: unitName, PricingUnit: unitName },
      ...{ ProviderName: provider, PublisherName: provider, InvoiceIssuerName: provider },
      ResourceId: resourceId([account.id, ...(workspace === null ? [] : [workspace]), resourceType, resourceName]),
      ...{ ResourceName: resourceName, ResourceType: typeName },
      ...{ ServiceCategory: category, ServiceName: serviceName, ServiceSubcategory: subcategory },
      // Each billing dimension has one price at a time, so the dimension identifies both the SKU and its price.
      ...{ SkuId: billingDimension, SkuMeter: meter, SkuPriceDetails: null, SkuPriceId: billingDimension },
      ...{ SubAccountId: workspace, SubAccountName: workspace },
    };
    return group.timeseries
      .filter(({ cost, usage }) => cost !== ZERO || usage !== ZERO)
      .map(({ timestamp, cost, usage }) => ({
        ...common,
        ...chargePeriod(timestamp, resolution),
        // All four costs are equal, because Meterline has no discounts and no prepayments.
        ...{ BilledCost: cost, ContractedCost: cost, EffectiveCost: cost, ListCost: cost },
        // Both quantities are equal, because usage is priced in the unit in which it is measured.
        ...{ ConsumedQuantity: usage, PricingQuantity: usage },
      }));
  });
}

/** Joins the parts into an ID that is unique within the provider. URL-encodes them, so that a slash in a name is not a separator. */
function resourceId(parts: readonly string[]): string {
  return parts.map(encodeURIComponent).join('/');
}

function chargePeriod(timestamp: string, resolution: FocusResolution) {
  const start = parseTimestamp(timestamp);
  if (start === undefined) throw new RangeError(`not a time: ${timestamp}`);
  return { ChargePeriodStart: start, ChargePeriodEnd: start + FOCUS_PERIOD_MS[resolution] };
}

type FocusService = readonly [type: string, service: string, category: string, subcategory: string];

/** Names of each resource type in FOCUS. The specification defines the allowed categories and subcategories. */
const FOCUS_SERVICES: Readonly<Partial<Record<ResourceType, FocusService>>> = {
  sandbox: ['Sandbox', 'Sandboxes', 'Compute', 'Containers'],
  agent: ['Agent', 'Agents', 'AI and Machine Learning', 'AI Platforms'],
  job: ['Batch Job', 'Batch Jobs', 'Compute', 'Serverless Compute'],
  mcp_server: ['MCP Server', 'MCP Servers', 'Compute', 'Serverless Compute'],
  volume: ['Volume', 'Volumes', 'Storage', 'Block Storage'],
  custom_domain: ['Custom Domain', 'Custom Domains', 'Networking', 'Application Networking'],
} satisfies Record<BuiltInResourceType, FocusService>;

/** Describes a resource type that the platform has added. */
function otherService(resourceType: ResourceType): FocusService {
  const name = titled(resourceType);
  return [name, `${name}s`, 'Other', 'Other (Other)'];
}

/** Capitalizes the words of a code: `Gpu Cluster` for `gpu_cluster`. */
function titled(code: string): string {
  const words = code.split('_').map((word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`);
  return words.join(' ');
}

/** Returns the name of the measured quantity, such as `Compute Runtime` for `mcp_server_compute_runtime_gbs`. */
function meterOf(dimension: BillingDimension, resourceType: ResourceType): string {
  return titled(dimension.slice(resourceType.length + 1).replace(/_[a-z]+$/, ''));
}

const FOCUS_UNITS: Readonly<Partial<Record<Unit, string>>> = {
  gbs: 'GB-Seconds',
  count: 'Requests',
  hours: 'Hours',
} satisfies Record<BuiltInUnit, string>;

export const FOCUS_VERSION = '1.2';

interface ValueOf {
  readonly String: string | null;
  readonly Decimal: DecimalText;
  readonly 'Date/Time': EpochMs;
}

const string = { type: 'String' } as const;
const time = { type: 'Date/Time' } as const;
/** A cost in USD. `scale` is the maximum number of decimal places. */
const cost = { type: 'Decimal', scale: COST_SCALE } as const;
const quantity = { type: 'Decimal', scale: USAGE_SCALE } as const;

/** All columns, in alphabetical order as in the FOCUS specification. */
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

export type FocusCharge = { readonly [Column in FocusColumn as Column['name']]: ValueOf[Column['type']] };

/** Returns the CSV header (RFC 4180, no byte order mark). Does not escape spreadsheet formulas, because FOCUS requires unchanged names. */
export function focusCsvHeading(): string {
  return csvLine(
    FOCUS_COLUMNS.map(({ name }) => name),
    'plain',
  );
}

export function focusCsvLines(charges: readonly FocusCharge[]): string {
  const fieldsOf = (charge: FocusCharge) => FOCUS_COLUMNS.map(({ name }) => fieldText(charge[name]));
  return charges.map((charge) => csvLine(fieldsOf(charge), 'plain')).join('');
}

function fieldText(value: FocusCharge[FocusColumn['name']]): string {
  return typeof value === 'number' ? formatTimestamp(value) : (value ?? '');
}
