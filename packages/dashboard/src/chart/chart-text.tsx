/** What the chart says: about one bucket, in a box beside the bar and as a sentence for screen readers; and the names of its colours. */
import { changeFrom, compareDecimals, ZERO } from '@meterline/catalog/plain';
import { seriesColor } from '../breakdown/breakdown.js';
import { amountText, changePercentText, differenceText } from '../breakdown/texts.js';
import { FORECAST_RULE, FORECAST_SUMMARY } from '../forecast/forecast.js';
import { bucketText, clockText } from '../period/period.js';
import type { ChartFigures } from './chart-figures.js';

export interface BucketTooltipProps {
  readonly figures: ChartFigures;
  readonly bucket: number;
  /** The series under the pointer. */
  readonly current: number | undefined;
  readonly hidden: ReadonlySet<string>;
  /** What a click does. */
  readonly hint: string | undefined;
}

export function BucketTooltip({ figures, bucket, current, hidden, hint }: BucketTooltipProps) {
  const { breakdown, unit, unfinished, asOf } = figures;
  const total = breakdown.totals[bucket] ?? ZERO;
  const isAhead = unfinished !== undefined && bucket > unfinished;
  const toCome = figures.toCome?.[bucket] ?? ZERO;
  const lines = breakdown.series
    .map((series, rank) => ({ series, rank, amount: series.points[bucket] ?? ZERO }))
    .filter(({ series, amount }) => amount !== ZERO && !hidden.has(series.key))
    .sort((a, b) => compareDecimals(b.amount, a.amount));
  return (
    <>
      <p className="tooltip-title">
        {nameOf(figures, bucket)} UTC{bucket === unfinished && `, up to ${clockText(asOf)}`}
      </p>
      {!isAhead && (
        <p className="tooltip-total">
          <span>
            {figures.isCumulative ? 'Total up to here' : 'Total'}
            {hidden.size > 0 && ', hidden groups included'}
          </span>
          <strong>{amountText(total, unit)}</strong>
        </p>
      )}
      {toCome !== ZERO && (
        <p className="tooltip-previous">
          <span>{isAhead ? 'Forecast' : 'Still to come, by forecast'}</span>
          <span>{amountText(toCome, unit)}</span>
        </p>
      )}
      {!isAhead && <PreviousLine {...{ figures, bucket }} />}
      {breakdown.series.length > 1 && lines.length > 0 && (
        <ul>
          {lines.map(({ series, rank, amount }) => (
            <li key={series.key} data-current={rank === current || undefined}>
              <span className="swatch" style={{ background: seriesColor(series, rank) }} />
              <span className="tooltip-name">{series.label}</span>
              <span>{amountText(amount, unit)}</span>
            </li>
          ))}
        </ul>
      )}
      {hint && !isAhead && <p className="tooltip-hint">{hint}</p>}
    </>
  );
}

function PreviousLine({ figures, bucket }: Pick<BucketTooltipProps, 'figures' | 'bucket'>) {
  const { breakdown, previous, resolution, unit } = figures;
  const before = previous?.points[bucket];
  const start = previous?.buckets[bucket];
  if (before === undefined || start === undefined) return null;
  const change = changeFrom(before, breakdown.totals[bucket] ?? ZERO);
  return (
    <p className="tooltip-previous">
      <span>{bucketText(start, resolution)}</span>
      <span>
        {amountText(before, unit)} ({differenceText(change, unit)}, {changePercentText(change)})
      </span>
    </p>
  );
}

function nameOf({ buckets, resolution }: ChartFigures, bucket: number): string {
  return bucketText(buckets[bucket] ?? 0, resolution);
}

export function bucketSentence({ figures, bucket, current }: BucketTooltipProps): string {
  const { breakdown, unit, unfinished, toCome } = figures;
  const name = nameOf(figures, bucket);
  if (unfinished !== undefined && bucket > unfinished) {
    return `${name}: forecast ${amountText(toCome?.[bucket] ?? ZERO, unit)}`;
  }
  const total = `${amountText(breakdown.totals[bucket] ?? ZERO, unit)}${bucket === unfinished ? ' so far' : ''}`;
  const series = current === undefined ? undefined : breakdown.series[current];
  return series
    ? `${name}: ${series.label} ${amountText(series.points[bucket] ?? ZERO, unit)} of ${total}`
    : `${name}: ${total}`;
}

interface LegendProps {
  readonly figures: ChartFigures;
  readonly hidden: ReadonlySet<string>;
  readonly onToggle: (key: string) => void;
  /** The pointer is over a name, or has left it. */
  readonly onPoint: (series: number | undefined) => void;
}

/** A click on a name takes its bars away, and puts them back. */
export function Legend({ figures, hidden, onToggle, onPoint }: LegendProps) {
  const { breakdown, previous, budget, toCome } = figures;
  // Forecast, comparison and budget are of all groups together, so they are not drawn beside some of them.
  const isWhole = hidden.size === 0;
  return (
    <ul className="legend" aria-label="Legend">
      {breakdown.series.map((series, rank) => (
        <li key={series.key}>
          <button
            type="button"
            aria-pressed={!hidden.has(series.key)}
            title={`${series.label}: click to ${hidden.has(series.key) ? 'show' : 'hide'}`}
            onClick={() => onToggle(series.key)}
            onPointerEnter={() => onPoint(rank)}
            onPointerLeave={() => onPoint(undefined)}
          >
            <span className="swatch" style={{ background: seriesColor(series, rank) }} />
            <span className="legend-name">{series.label}</span>
          </button>
        </li>
      ))}
      {isWhole && toCome && (
        <li title={FORECAST_RULE}>
          <span className="swatch swatch-forecast" />
          <span className="legend-name">Forecast ({FORECAST_SUMMARY})</span>
        </li>
      )}
      {isWhole && previous && (
        <li>
          <span className="swatch-line" />
          <span className="legend-name">{previous.distance}</span>
        </li>
      )}
      {isWhole && budget && (
        <li>
          <span className="swatch-line dashed" />
          <span className="legend-name">
            Budget, {amountText(budget.amount, undefined)} {budget.per}
          </span>
        </li>
      )}
    </ul>
  );
}
