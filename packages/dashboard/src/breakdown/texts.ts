/** How values, amounts, changes and shares are written. Codes stay in the CSV and in the URL. */
import {
  approximateDecimal,
  type BillingDimension,
  type Change,
  type DecimalText,
  type EntryField,
  formatUsage,
  formatUsd,
  formatUsdExact,
  type GroupByDimension,
  percentChangeText,
  type ResourceType,
  type Unit,
} from '@meterline/catalog';
import type { Filter } from '../view/filters.js';
import { type Quantity, quantityText } from './quantities.js';

export const DIMENSION_LABEL = {
  workspace: 'Workspace',
  resource_type: 'Resource type',
  resource_name: 'Resource',
  resource_uuid: 'Instance',
  billing_dimension: 'Billing dimension',
} as const satisfies Record<GroupByDimension, string>;

export const RESOURCE_TYPE_LABEL = {
  sandbox: 'Sandbox',
  agent: 'Agent',
  job: 'Job',
  mcp_server: 'MCP server',
  volume: 'Volume',
  custom_domain: 'Custom domain',
} as const satisfies Record<ResourceType, string>;

export const BILLING_DIMENSION_LABEL = {
  sandbox_compute_runtime_gbs: 'Sandbox compute',
  sandbox_image_storage_gbs: 'Sandbox image storage',
  sandbox_snapshot_storage_gbs: 'Sandbox snapshots',
  agent_compute_runtime_gbs: 'Agent compute',
  agent_image_storage_gbs: 'Agent image storage',
  agent_async_requests_count: 'Agent async requests',
  job_compute_runtime_gbs: 'Job compute',
  job_image_storage_gbs: 'Job image storage',
  mcp_server_compute_runtime_gbs: 'MCP server compute',
  mcp_server_image_storage_gbs: 'MCP server image storage',
  volume_storage_gbs: 'Volume storage',
  custom_domain_active_time_hours: 'Custom domain active time',
} as const satisfies Record<BillingDimension, string>;

export const UNIT_LABEL = { gbs: 'GB-seconds', count: 'events', hours: 'hours' } as const satisfies Record<
  Unit,
  string
>;

const LABELS_OF_FIELD: Partial<Record<EntryField, Readonly<Record<string, string>>>> = {
  resourceType: RESOURCE_TYPE_LABEL,
  billingDimension: BILLING_DIMENSION_LABEL,
};

export function valueLabel(field: EntryField, value: string): string {
  if (value === '') return 'no instance id';
  return LABELS_OF_FIELD[field]?.[value] ?? value;
}

/** Rounded the same way wherever it stands: money to cents. @param unit undefined: money */
export function amountText(amount: DecimalText, unit: Quantity | undefined): string {
  const text = unit === undefined ? formatUsd(amount) : quantityText(amount, unit);
  return text.replace(/^-/, '−');
}

/** Every digit. Usage is in the API's own unit: in any other it may have no end. */
export function exactText(amount: DecimalText, unit: Quantity | undefined): string {
  const text = unit === undefined ? formatUsdExact(amount) : formatUsage(amount, unit.base);
  return text.replace(/^-/, '−');
}

const COMPACT = new Intl.NumberFormat('en-US', { notation: 'compact', maximumSignificantDigits: 3 });
const SIGNIFICANT = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 3, maximumFractionDigits: 20 });

/** A number on an axis, which is no exact amount. */
export function axisText(value: number, unit: Quantity | undefined): string {
  if (value === 0) return unit === undefined ? '$0' : '0';
  const text = Math.abs(value) >= 1_000 ? COMPACT.format(value) : SIGNIFICANT.format(value);
  return unit === undefined ? `$${text}` : text;
}

/** From 0 to 1, for the length of a bar. */
export function shareOf(part: DecimalText, whole: DecimalText): number {
  const denominator = approximateDecimal(whole);
  return denominator > 0 ? Math.min(1, Math.max(0, approximateDecimal(part) / denominator)) : 0;
}

export function differenceText({ difference, direction }: Change, unit: Quantity | undefined): string {
  return `${direction === 'up' ? '+' : ''}${amountText(difference, unit)}`;
}

export function exactDifferenceText({ difference, direction }: Change, unit: Quantity | undefined): string {
  return `${direction === 'up' ? '+' : ''}${exactText(difference, unit)}`;
}

/** `+12.3%`; `new` when there was nothing before. */
export function changePercentText(change: Change): string {
  return percentChangeText(change).replace(/^-/, '−');
}

/** `agent-1`, `3 values`, `all but agent-1`. */
export function filterText(field: EntryField, { values, isExcluded }: Filter): string {
  const [only = '', ...others] = values;
  const text = others.length === 0 ? valueLabel(field, only) : `${values.length} values`;
  return isExcluded ? `all but ${text}` : text;
}
