/** The room of what is being fetched, so that nothing moves when it comes. */

/** Heights of bars, in percent: made up, the same every time, and no two alike, for they are the keys too. */
const BARS = [38, 52, 47, 60, 66, 30, 26, 55, 63, 71, 67, 74, 35, 31, 62, 70, 77, 81, 72, 40, 36, 68, 75, 84];
const ROWS = [62, 48, 55, 40, 51, 35];

export function ChartSkeleton() {
  return (
    <div className="chart-skeleton" aria-hidden="true">
      {BARS.map((height) => (
        <span key={height} style={{ height: `${height}%` }} />
      ))}
    </div>
  );
}

export function TableSkeleton() {
  return (
    <div className="table-skeleton" aria-hidden="true">
      {ROWS.map((width) => (
        <span key={width} style={{ width: `${width}%` }} />
      ))}
    </div>
  );
}
