/** How values, amounts, changes and shares are written. Codes stay in the CSV and in the URL. */
import {
  approximateDecimal,
  type BillingDimension,
  compareDecimals,
  type DecimalText,
  type EntryField,
  formatUsage,
  formatUsd,
  type GroupByDimension,
  grouped,
  percentOf,
  type ResourceType,
  subtractDecimals,
  type Unit,
  ZERO,
} from '@meterline/catalog';

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

const USAGE_DIGITS = 1;

/** Rounded, for places where all digits would be too many. @param unit undefined: money */
export function amountText(amount: DecimalText, unit: Unit | undefined): string {
  const text = unit === undefined ? formatUsd(amount) : formatUsage(amount, unit, USAGE_DIGITS);
  return text.replace(/^-/, '−');
}

const COMPACT = new Intl.NumberFormat('en-US', { notation: 'compact', maximumSignificantDigits: 3 });
const SIGNIFICANT = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 3, maximumFractionDigits: 14 });

/** A number on an axis, which is no exact amount. */
export function axisText(value: number, unit: Unit | undefined): string {
  if (value === 0) return unit === undefined ? '$0' : '0';
  const text = Math.abs(value) >= 1_000 ? COMPACT.format(value) : SIGNIFICANT.format(value);
  return unit === undefined ? `$${text}` : text;
}

/** `12.3%`. Only zero is written as 0.0%, and only the whole as 100.0%. */
export function shareText(part: DecimalText, whole: DecimalText): string {
  const share = percentOf(part, whole);
  if (share === undefined) return '–';
  if (share === ZERO && part !== ZERO) return '<0.1%';
  if (share === '100' && part !== whole) return '>99.9%';
  return `${share.includes('.') ? share : `${share}.0`}%`;
}

/** From 0 to 1, for the length of a bar. */
export function shareOf(part: DecimalText, whole: DecimalText): number {
  const denominator = approximateDecimal(whole);
  return denominator > 0 ? Math.min(1, Math.max(0, approximateDecimal(part) / denominator)) : 0;
}

/** By how much an amount changed, in its own unit and in percent. */
export interface Change {
  /** Negative when there is less than before. */
  readonly difference: DecimalText;
  /** One digit after the point; undefined when there was nothing before. */
  readonly percent: DecimalText | undefined;
  readonly direction: 'up' | 'down' | 'same';
}

export function changeFrom(before: DecimalText, now: DecimalText): Change {
  const difference = subtractDecimals(now, before);
  const sign = compareDecimals(difference, ZERO);
  return {
    difference,
    percent: percentOf(difference, before),
    direction: sign > 0 ? 'up' : sign < 0 ? 'down' : 'same',
  };
}

export function differenceText({ difference, direction }: Change, unit: Unit | undefined): string {
  return `${direction === 'up' ? '+' : ''}${amountText(difference, unit)}`;
}

/** `+12.3%`; `new` when there was nothing before. */
export function changePercentText({ percent, direction }: Change): string {
  if (percent === undefined) return direction === 'same' ? '0%' : 'new';
  const digits = grouped(percent.includes('.') ? percent : `${percent}.0`);
  return `${direction === 'up' ? '+' : ''}${digits}%`.replace(/^-/, '−');
}
