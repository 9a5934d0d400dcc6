import { memo } from 'react';
import type { Breakdown } from '../breakdown/breakdown.js';
import type { ChartDrawing, Label } from './chart-drawing.js';
import { seriesColor } from './series-color.js';

interface ChartShapesProps {
  readonly drawing: ChartDrawing;
  readonly breakdown: Breakdown;
  /** The series that stands out; undefined: all look the same. */
  readonly lit: number | undefined;
}

/** The drawing as SVG. Screen readers have the slider around it. */
export const ChartShapes = memo(function ChartShapes({ drawing, breakdown, lit }: ChartShapesProps) {
  return (
    <svg aria-hidden="true">
      <path className="chart-grid" d={drawing.grid} />
      <path className="chart-axis" d={drawing.axis} />
      {drawing.bars.map(({ closed, open }, rank) => {
        const series = breakdown.series[rank];
        if (!series) return null;
        const isQuiet = lit !== undefined && lit !== rank;
        return (
          <g
            key={series.key}
            className={`chart-bars${isQuiet ? ' quiet' : ''}`}
            style={{ color: seriesColor(series, rank) }}
          >
            <path d={closed} />
            <path className="open" d={open} />
          </g>
        );
      })}
      <path className="chart-forecast" d={drawing.forecast} />
      <path className="chart-previous-edge" d={drawing.previous} />
      <path className="chart-previous" d={drawing.previous} />
      <path className="chart-budget" d={drawing.budget} />
      <Labels className="amounts" labels={drawing.amounts} />
      <Labels className="times" labels={drawing.times} />
    </svg>
  );
});

function Labels({ className, labels }: { readonly className: string; readonly labels: readonly Label[] }) {
  return (
    <g className={className}>
      {labels.map(({ text, x, y }) => (
        <text key={`${x} ${y}`} x={x} y={y}>
          {text}
        </text>
      ))}
    </g>
  );
}
