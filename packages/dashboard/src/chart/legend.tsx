import type { Breakdown } from '../breakdown/breakdown.js';
import { type Palette, seriesColor } from './palette.js';

interface LegendProps {
  readonly breakdown: Breakdown;
  readonly palette: Palette;
  readonly hasPrevious: boolean;
  readonly onPoint: (series: number | undefined) => void;
}

export function Legend({ breakdown, palette, hasPrevious, onPoint }: LegendProps) {
  return (
    <ul className="legend" aria-label="Legend">
      {breakdown.series.map((series, rank) => (
        <li key={series.key} onPointerEnter={() => onPoint(rank)} onPointerLeave={() => onPoint(undefined)}>
          <span className="swatch" style={{ background: seriesColor(series, rank, palette) }} />
          <span className="legend-name">{series.label}</span>
        </li>
      ))}
      {hasPrevious && (
        <li>
          <span className="swatch-line" />
          <span className="legend-name">Previous period</span>
        </li>
      )}
    </ul>
  );
}
