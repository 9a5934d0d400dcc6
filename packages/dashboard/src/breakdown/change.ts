/** By how much something changed, in its own unit and in percent. */
import { compareDecimals, type DecimalText, grouped, percentOf, subtractDecimals, ZERO } from '@meterline/catalog';

export interface Change {
  /** Below zero when there is less than before. */
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

/** `+12.3%`; what was not there before is "new". */
export function changePercentText({ percent, direction }: Change): string {
  if (percent === undefined) return direction === 'same' ? '0%' : 'new';
  const digits = grouped(percent.includes('.') ? percent : `${percent}.0`);
  return `${direction === 'up' ? '+' : ''}${digits}%`.replace(/^-/, '−');
}
