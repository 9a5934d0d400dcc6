import { compareDecimals, type DecimalText, type Resolution, type Unit, ZERO } from '@meterline/catalog';
import { amountText, differenceText } from '../breakdown/amount-text.js';
import type { Breakdown } from '../breakdown/breakdown.js';
import { changeFrom, changePercentText } from '../breakdown/change.js';
import { bucketText } from '../period/period-text.js';
import { type Palette, seriesColor } from './palette.js';

export interface BucketTooltipProps {
  readonly breakdown: Breakdown;
  readonly bucket: number;
  /** The series under the pointer. */
  readonly current: number | undefined;
  readonly previous: DecimalText | undefined;
  readonly resolution: Resolution;
  readonly unit: Unit | undefined;
  readonly palette: Palette;
  /** What a click does. */
  readonly hint: string | undefined;
}

export function BucketTooltip(props: BucketTooltipProps) {
  const { breakdown, bucket, current, previous, resolution, unit, palette, hint } = props;
  const total = breakdown.totals[bucket] ?? ZERO;
  const lines = breakdown.series
    .map((series, rank) => ({ series, rank, amount: series.points[bucket] ?? ZERO }))
    .filter(({ amount }) => amount !== ZERO)
    .sort((a, b) => compareDecimals(b.amount, a.amount));
  const change = previous === undefined ? undefined : changeFrom(previous, total);
  return (
    <>
      <p className="tooltip-title">{bucketText(breakdown.buckets[bucket] ?? 0, resolution)} UTC</p>
      <p className="tooltip-total">
        <span>Total</span>
        <strong>{amountText(total, unit)}</strong>
      </p>
      {change && previous !== undefined && (
        <p className="tooltip-previous">
          <span>Period before</span>
          <span>
            {amountText(previous, unit)} ({differenceText(change, unit)}, {changePercentText(change)})
          </span>
        </p>
      )}
      {breakdown.series.length > 1 && (
        <ul>
          {lines.map(({ series, rank, amount }) => (
            <li key={series.key} data-current={rank === current || undefined}>
              <span className="swatch" style={{ background: seriesColor(series, rank, palette) }} />
              <span className="tooltip-name">{series.label}</span>
              <span>{amountText(amount, unit)}</span>
            </li>
          ))}
        </ul>
      )}
      {hint && <p className="tooltip-hint">{hint}</p>}
    </>
  );
}

/** The same as one sentence, for those who hear it. */
export function bucketSentence({ breakdown, bucket, current, resolution, unit }: BucketTooltipProps): string {
  const name = bucketText(breakdown.buckets[bucket] ?? 0, resolution);
  const total = amountText(breakdown.totals[bucket] ?? ZERO, unit);
  const series = current === undefined ? undefined : breakdown.series[current];
  return series
    ? `${name}: ${series.label} ${amountText(series.points[bucket] ?? ZERO, unit)} of ${total}`
    : `${name}: ${total}`;
}
