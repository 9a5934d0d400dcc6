/** The names of the colours. */
import { amountText } from '../breakdown/texts.js';
import { FORECAST_RULE, FORECAST_SUMMARY } from '../forecast/forecast.js';
import type { ChartFigures } from './chart-figures.js';
import { seriesColor } from './series-color.js';

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
  // Of all groups together, so they are not drawn beside some of them.
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
          <span className="legend-name legend-rule">Forecast ({FORECAST_SUMMARY})</span>
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
