/** The chart's figures as a table: a row for each bucket, a column for each series. */
import { type DecimalText, ZERO } from '@meterline/catalog';
import { bucketText } from '../period/period.js';
import { Amount, ViewLink } from '../table/cells.js';
import { roomOf } from '../table/rows.js';
import { canDrill, drillDown, type View } from '../view/view.js';
import type { ChartFigures, TargetOf } from './chart-figures.js';

interface SeriesTableProps {
  readonly figures: ChartFigures;
  readonly view: View;
  readonly targetOf: TargetOf;
}

export function SeriesTable({ figures, view, targetOf }: SeriesTableProps) {
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
