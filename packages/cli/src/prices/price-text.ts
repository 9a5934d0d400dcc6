/** A price as people say it. */
import { grouped, type Price, UNIT_NAME, type Unit } from '@meterline/catalog';

/** A month is 730 hours: the storage prices of most books are for a GB over a month. */
const GB_SECONDS_PER_GB_MONTH = '2628000';
const HOURS_PER_MONTH = '730';

/** `$0.0000115 per GB-s`, `$0.12 per GB-month`, `$0.20 per 1,000,000 events`. */
export function priceText({ amount, per }: Pick<Price, 'amount' | 'per'>, unit: Unit): string {
  return `$${grouped(amount)} per ${quantityText(per, unit)}`;
}

function quantityText(per: string, unit: Unit): string {
  if (unit === 'gbs' && per === GB_SECONDS_PER_GB_MONTH) return 'GB-month';
  if (unit === 'hours' && per === HOURS_PER_MONTH) return 'month (730 h)';
  if (unit === 'count' && per === '1') return 'event';
  return per === '1' ? UNIT_NAME[unit] : `${grouped(per)} ${UNIT_NAME[unit]}`;
}
