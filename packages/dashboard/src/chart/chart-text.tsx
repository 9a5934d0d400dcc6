/** Renders the texts of the chart: the tooltip of a bucket, a sentence with the same content for screen readers, and the legend. */
import { changeFrom, compareDecimals, ZERO } from '@meterline/catalog/plain';
import { seriesColor } from '../breakdown/breakdown.js';
import { FORECAST_RULE, FORECAST_SUMMARY } from '../forecast/forecast.js';
import { amountText, changePercentText, differenceText } from '../format/texts.js';
import { bucketText, clockText } from '../period/period.js';
import type { ChartFigures } from './chart-figures.js';

export interface BucketTooltipProps {
  readonly figures: ChartFigures;
  readonly bucket: number;
  readonly series: number | undefined;
  readonly hidden: ReadonlySet<string>;
  readonly hint: string | undefined;
}

export function BucketTooltip({ figures, bucket, series: current, hidden, hint }: BucketTooltipProps) {
  const { breakdown, unit, unfinished, asOf } = figures;
  const total = breakdown.totals[bucket] ?? ZERO;
  const isFuture = unfinished !== undefined && bucket > unfinished;
  const expected = figures.expected?.[bucket] ?? ZERO;
  const lines = breakdown.series
    .map((series, rank) => ({ series, rank, amount: series.points[bucket] ?? ZERO }))
    .filter(({ series, amount }) => amount !== ZERO && !hidden.has(series.key))
    .sort((a, b) => compareDecimals(b.amount, a.amount));
  return (
    <>
      <p className="tooltip-title">
        {nameOf(figures, bucket)} UTC{bucket === unfinished && `, up to ${clockText(asOf)}`}
      </p>
      {!isFuture && (
        <p className="tooltip-total">
          <span>
            {figures.isCumulative ? 'Cumulative total' : 'Total'}
            {hidden.size > 0 && ' (including hidden groups)'}
          </span>
          <strong>{amountText(total, unit)}</strong>
        </p>
      )}
      {expected !== ZERO && (
        <p className="tooltip-previous">
          <span>{isFuture ? 'Forecast' : 'Forecast for the rest'}</span>
          <span>{amountText(expected, unit)}</span>
        </p>
      )}
      {!isFuture && <PreviousLine {...{ figures, bucket }} />}
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
      {hint && !isFuture && <p className="tooltip-hint">{hint}</p>}
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

export function bucketSentence({ figures, bucket, series: current }: BucketTooltipProps): string {
  const { breakdown, unit, unfinished, expected } = figures;
  const name = nameOf(figures, bucket);
  if (unfinished !== undefined && bucket > unfinished) {
    return `${name}: forecast ${amountText(expected?.[bucket] ?? ZERO, unit)}`;
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
  /** Called with undefined when the pointer leaves a name. */
  readonly onHover: (series: number | undefined) => void;
}

/** Renders the legend. A click on a name hides the bars of its series, and another click shows them again. */
export function Legend({ figures, hidden, onToggle, onHover }: LegendProps) {
  const { breakdown, previous, budget, expected, isCumulative, resolution } = figures;
  const isComplete = hidden.size === 0;
  const mixesWeekdays = previous?.isByDate && !isCumulative && (resolution === 'daily' || resolution === 'hourly');
  return (
    <ul className="legend" aria-label="Legend">
      {breakdown.series.map((series, rank) => (
        <li key={series.key}>
          <button
            type="button"
            aria-pressed={!hidden.has(series.key)}
            title={`${series.label}: click to ${hidden.has(series.key) ? 'show' : 'hide'}`}
            onClick={() => onToggle(series.key)}
            onPointerEnter={() => onHover(rank)}
            onPointerLeave={() => onHover(undefined)}
          >
            <span className="swatch" style={{ background: seriesColor(series, rank) }} />
            <span className="legend-name">{series.label}</span>
          </button>
        </li>
      ))}
      {isComplete && expected && (
        <li title={FORECAST_RULE}>
          <span className="swatch swatch-forecast" />
          <span className="legend-name">Forecast ({FORECAST_SUMMARY})</span>
        </li>
      )}
      {isComplete && previous && (
        <li>
          <span className="swatch-line" />
          <span className="legend-name">{previous.distance}</span>
        </li>
      )}
      {isComplete && mixesWeekdays && (
        <li>
          The line compares the same dates, so weekdays differ. “Cumulative” in Options compares the totals so far.
        </li>
      )}
      {isComplete && budget && (
        <li>
          <span className="swatch-line dashed" />
          <span className="legend-name">
            Budget: {amountText(budget.amount, undefined)} per {budget.per}
          </span>
        </li>
      )}
    </ul>
  );
}
