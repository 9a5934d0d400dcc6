/** Renders the card with the data over time, as a chart or as a table. */
import { type DecimalText, type PeriodChoice, ZERO } from '@meterline/catalog/plain';
import { useMemo } from 'react';
import { useComparison } from '../account/use-comparison.js';
import type { Costs } from '../account/use-costs.js';
import { useMonth } from '../account/use-month.js';
import { AlertsButton } from '../alerts/alerts-panel.js';
import { Segments } from '../controls/controls.js';
import { DIMENSION_LABEL, LIST } from '../format/texts.js';
import { bucketText, bucketWindow } from '../period/period.js';
import { Skeleton } from '../states/panels.js';
import { Amount, ViewLink } from '../table/cells.js';
import { changeView, navigate } from '../view/address.js';
import { canDrill, drillDown, type View, zoomInto } from '../view/view.js';
import { type ChartFigures, chartFigures, type Target, type TargetOf } from './chart-figures.js';
import { UsageChart } from './usage-chart.js';

export function ChartCard({ costs }: { readonly costs: Costs }) {
  const { account, role, view, breakdown, window, resolution, unit, asOf, filters } = costs;
  const { series: previous } = useComparison(costs);
  const { month, alerts, budget } = useMonth(costs);
  const { isCumulative } = view;
  const expected = month?.expected;
  const figures = useMemo(() => {
    const source = { window, resolution, unit, asOf, isCumulative, expected, previous, budget };
    return breakdown && chartFigures({ ...source, breakdown });
  }, [breakdown, window, resolution, unit, asOf, isCumulative, expected, previous, budget]);
  const targetOf: TargetOf = (series, bucket) => targetIn(costs, series, bucket);
  const zoom = (first: number, last: number) => navigate(zoomInto(view, rangeOf(costs, first, last)));
  return (
    <section className="card" aria-label="Over time" aria-busy={figures === undefined}>
      <header className="card-header">
        <h2>{title(costs)}</h2>
        <div className="chart-tools">
          {alerts && <AlertsButton {...{ account, alerts, filters }} isAdmin={role === 'admin'} />}
          <Segments
            legend="Display as"
            choices={['Chart', 'Table']}
            chosen={view.asTable ? 'Table' : 'Chart'}
            onChoose={(form) => changeView({ asTable: form === 'Table' })}
          />
        </div>
      </header>
      {!figures && <Skeleton of="chart" />}
      {figures && view.asTable && <SeriesTable {...{ figures, view, targetOf }} />}
      {figures && !view.asTable && <UsageChart {...{ figures, targetOf }} onZoom={zoom} />}
    </section>
  );
}

/** Returns what a click opens: the series within the bucket's period, or only the period if the series cannot be broken down further. */
function targetIn(costs: Costs, series: number | undefined, bucket: number): Target | undefined {
  const { view, resolution, breakdown } = costs;
  if (breakdown?.buckets[bucket] === undefined) return undefined;
  const period = rangeOf(costs, bucket, bucket);
  const chosen = series === undefined ? undefined : breakdown.series[series];
  if (chosen?.values && canDrill(view)) {
    return { view: drillDown(view, chosen.values, period), hint: `to break down ${chosen.label}` };
  }
  if (resolution === 'hourly') return undefined;
  return { view: zoomInto(view, period), hint: 'to zoom in, or drag to select a range' };
}

function rangeOf({ breakdown, resolution, window }: Costs, first: number, last: number): PeriodChoice {
  const [from, to] = [first, last].map((bucket) =>
    bucketWindow(breakdown?.buckets[bucket] ?? window.startTime, resolution, window),
  );
  return { from: from?.startTime ?? 0, to: to?.endTime ?? 0 };
}

function title({ view: { groupBy, isCumulative }, unit }: Costs): string {
  const measure = unit === undefined ? 'cost' : `usage in ${unit.name}`;
  const by = LIST.format(groupBy.map((dimension) => DIMENSION_LABEL[dimension].toLowerCase()));
  const text = `${isCumulative ? 'cumulative ' : ''}${measure}${by ? ` by ${by}` : ''}`;
  return text.replace(/^./, (first) => first.toUpperCase());
}

interface SeriesTableProps {
  readonly figures: ChartFigures;
  readonly view: View;
  readonly targetOf: TargetOf;
}

/** Shows the data of the chart as a table with a row for each bucket and a column for each series. */
function SeriesTable({ figures, view, targetOf }: SeriesTableProps) {
  const { isExact } = view;
  const { breakdown, buckets, resolution, previous, unit, expected, unfinished = buckets.length } = figures;
  const { series, totals, total } = breakdown;
  const text = (amount: DecimalText | undefined) =>
    amount === undefined ? '–' : <Amount {...{ amount, unit, isExact }} />;
  /** Drops the future buckets, which have no amounts. */
  const begun = (points: readonly DecimalText[]) => points.slice(0, unfinished + 1);
  const columns: readonly Column[] = [
    { key: 'total', label: 'Total', points: begun(totals), total },
    ...(previous ? [{ key: 'previous', label: previous.distance, points: previous.points }] : []),
    ...(expected
      ? [
          {
            key: 'forecast',
            label: 'Forecast',
            points: expected.map((amount) => (amount === ZERO ? undefined : amount)),
          },
        ]
      : []),
    ...(series.length > 1 ? series : []).map((each) => ({
      ...each,
      points: begun(each.points),
      to: each.values && canDrill(view) ? drillDown(view, each.values) : undefined,
    })),
  ];
  return (
    <section className="scroller series-table" aria-label="Chart data">
      <table>
        <thead>
          <tr>
            <th scope="col">Time (UTC){unit && `, in ${unit.name}`}</th>
            {columns.map(({ key, label, to }) => (
              <th key={key} scope="col" className="number series-name" title={label}>
                <OptionalLink to={to}>{label}</OptionalLink>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {buckets.map((bucket, index) => (
            <tr key={bucket}>
              <th scope="row">
                <OptionalLink to={index > unfinished ? undefined : targetOf(undefined, index)?.view}>
                  {bucketText(bucket, resolution)}
                </OptionalLink>
                {index === unfinished && <span className="detail"> so far</span>}
              </th>
              {columns.map(({ key, points }) => (
                <td key={key} className="number">
                  {text(points[index])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
        {!figures.isCumulative && (
          <tfoot>
            <tr>
              <th scope="row">Total</th>
              {columns.map((column) => (
                <td key={column.key} className="number">
                  {column.total && text(column.total)}
                </td>
              ))}
            </tr>
          </tfoot>
        )}
      </table>
    </section>
  );
}

interface Column {
  readonly key: string;
  readonly label: string;
  /** One amount for each bucket, or undefined for a bucket without an amount. */
  readonly points: readonly (DecimalText | undefined)[];
  readonly total?: DecimalText;
  readonly to?: View | undefined;
}

function OptionalLink({ to, children }: { readonly to: View | undefined; readonly children: string }) {
  return to ? <ViewLink to={to}>{children}</ViewLink> : children;
}
