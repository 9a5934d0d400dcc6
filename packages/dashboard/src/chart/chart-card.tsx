/** The card with the figures over time: as a chart or as a table, with what a click on each bar or name opens. */
import { type DecimalText, ZERO } from '@meterline/catalog/plain';
import type { ShownAccount } from '../account/use-account-view.js';
import { AlertsButton } from '../alerts/alerts-panel.js';
import { DIMENSION_LABEL } from '../breakdown/texts.js';
import { Segments } from '../controls/controls.js';
import { bucketText, bucketWindow, type PeriodChoice } from '../period/period.js';
import { Skeleton } from '../states/panels.js';
import { Amount, ViewLink } from '../table/cells.js';
import { roomOf } from '../table/rows.js';
import { changeView, navigate } from '../view/address.js';
import { canDrill, drillDown, type View, zoomInto } from '../view/view.js';
import type { ChartFigures, Target, TargetOf } from './chart-figures.js';
import { UsageChart } from './usage-chart.js';

export function ChartCard({ shown }: { readonly shown: ShownAccount }) {
  const { account, role, view, figures, filters, alerts } = shown;
  const targetOf: TargetOf = (series, bucket) => targetIn(shown, series, bucket);
  const zoom = (first: number, last: number) => navigate(zoomInto(view, rangeOf(shown, first, last)));
  return (
    <section className="card" aria-label="Over time" aria-busy={figures === undefined}>
      <header className="card-header">
        <h2>{title(shown)}</h2>
        <div className="chart-tools">
          {alerts && <AlertsButton {...{ account, alerts, filters }} isAdmin={role === 'admin'} />}
          <Segments
            legend="How the figures are shown"
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

/** The group in the bucket's time; without a group, or when it cannot be broken down further, that time alone. */
function targetIn(shown: ShownAccount, series: number | undefined, bucket: number): Target | undefined {
  const { view, resolution, breakdown } = shown;
  if (breakdown?.buckets[bucket] === undefined) return undefined;
  const period = rangeOf(shown, bucket, bucket);
  const chosen = series === undefined ? undefined : breakdown.series[series];
  if (chosen?.values && canDrill(view)) {
    return { view: drillDown(view, chosen.values, period), hint: `breaks down ${chosen.label}` };
  }
  if (resolution === 'hourly') return undefined;
  return { view: zoomInto(view, period), hint: 'zooms in; dragging chooses a range' };
}

function rangeOf({ breakdown, resolution, window }: ShownAccount, first: number, last: number): PeriodChoice {
  const [from, to] = [first, last].map((bucket) =>
    bucketWindow(breakdown?.buckets[bucket] ?? window.startTime, resolution, window),
  );
  return { from: from?.startTime ?? 0, to: to?.endTime ?? 0 };
}

function title({ view: { groupBy, isCumulative }, unit }: ShownAccount): string {
  const measure = unit === undefined ? 'cost' : `usage in ${unit.name}`;
  const by = groupBy.map((dimension) => DIMENSION_LABEL[dimension].toLowerCase()).join(' and ');
  const text = `${isCumulative ? 'cumulative ' : ''}${measure}${by ? ` by ${by}` : ''}`;
  return text.replace(/^./, (first) => first.toUpperCase());
}

/** The chart's figures as a table: a row for each bucket, a column for each series. */
interface SeriesTableProps {
  readonly figures: ChartFigures;
  readonly view: View;
  readonly targetOf: TargetOf;
}

function SeriesTable({ figures, view, targetOf }: SeriesTableProps) {
  const { isExact } = view;
  const { breakdown, buckets, resolution, previous, unit, toCome, unfinished = buckets.length } = figures;
  const { series, totals, total } = breakdown;
  const room = roomOf([total, ...totals, ...(previous?.points ?? []), ...series.flatMap(({ points }) => points)], unit);
  const text = (amount: DecimalText | undefined) =>
    amount === undefined ? '–' : <Amount {...{ amount, unit, isExact, room }} />;
  /** What is still to come has no amount. */
  const passed = (points: readonly DecimalText[]) => points.slice(0, unfinished + 1);
  const columns: readonly Column[] = [
    { key: 'total', label: 'Total', points: passed(totals), total },
    ...(previous ? [{ key: 'previous', label: previous.distance, points: previous.points }] : []),
    ...(toCome
      ? [{ key: 'forecast', label: 'Forecast', points: toCome.map((amount) => (amount === ZERO ? undefined : amount)) }]
      : []),
    ...(series.length > 1 ? series : []).map((each) => ({
      ...each,
      points: passed(each.points),
      to: each.values && canDrill(view) ? drillDown(view, each.values) : undefined,
    })),
  ];
  return (
    <section className="scroller series-table" aria-label="The chart's figures">
      <table>
        <thead>
          <tr>
            <th scope="col">Time (UTC){unit && `, in ${unit.name}`}</th>
            {columns.map(({ key, label, to }) => (
              <th key={key} scope="col" className="number series-name" title={label}>
                <Linked to={to}>{label}</Linked>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {buckets.map((bucket, index) => (
            <tr key={bucket}>
              <th scope="row">
                <Linked to={index > unfinished ? undefined : targetOf(undefined, index)?.view}>
                  {bucketText(bucket, resolution)}
                </Linked>
                {index === unfinished && <span className="beside"> so far</span>}
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
  /** One amount a bucket, where there is one. */
  readonly points: readonly (DecimalText | undefined)[];
  readonly total?: DecimalText;
  /** What a click on the label opens. */
  readonly to?: View | undefined;
}

function Linked({ to, children }: { readonly to: View | undefined; readonly children: string }) {
  return to ? <ViewLink to={to}>{children}</ViewLink> : children;
}
