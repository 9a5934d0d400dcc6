/**
 * A page of metrics as charges, with what FOCUS calls the services, meters and units.
 * Source: FOCUS 1.2, columns ServiceCategory and ServiceSubcategory (allowed values), attribute Unit Format.
 */
import {
  type BillingDimension,
  DIMENSIONS,
  MS_PER_DAY,
  MS_PER_HOUR,
  parseTimestamp,
  type ResourceType,
  type Unit,
  type Window,
  ZERO,
} from '@meterline/catalog';
import type { MetricsAnswerBy } from '../grouping.js';
import type { FocusCharge } from './columns.js';

/** A row for each day, or for each hour. */
export const FOCUS_RESOLUTIONS = ['daily', 'hourly'] as const;
export type FocusResolution = (typeof FOCUS_RESOLUTIONS)[number];

const FOCUS_PERIOD_MS = { daily: MS_PER_DAY, hourly: MS_PER_HOUR } as const satisfies Record<FocusResolution, number>;

/** What all charges of an export have in common. */
export interface FocusSetting {
  readonly account: { readonly id: string; readonly name: string };
  /** It publishes and invoices too. */
  readonly provider: string;
  /** A calendar month. */
  readonly month: Window;
  readonly resolution: FocusResolution;
}

/** The groups of an admin, and of a member, who may not ask for workspaces. */
export const ADMIN_GROUPS = ['workspace', 'resource_name', 'billing_dimension'] as const;
export const MEMBER_GROUPS = ['resource_name', 'billing_dimension'] as const;

export type FocusPage = MetricsAnswerBy<typeof ADMIN_GROUPS> | MetricsAnswerBy<typeof MEMBER_GROUPS>;

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
