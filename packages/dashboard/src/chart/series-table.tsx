/** The chart's figures with all their digits: a row for each bucket, a column for each series. */
import { type DecimalText, type Resolution, UNIT_NAME, type Unit, ZERO } from '@meterline/catalog';
import type { Breakdown } from '../breakdown/breakdown.js';
import { bucketText } from '../period/period.js';
import { ExactAmount, ViewLink } from '../table/cells.js';
import { longestFraction } from '../table/rows.js';
import type { View } from '../view/view.js';

const MONEY_DIGITS = 2;

interface SeriesTableProps {
  readonly breakdown: Breakdown;
  readonly resolution: Resolution;
  readonly previous: readonly DecimalText[] | undefined;
  readonly unit: Unit | undefined;
  /** What a bucket or a group opens; undefined: nothing. */
  readonly viewOf: (series: number | undefined, bucket: number) => View | undefined;
}

export function SeriesTable({ breakdown, resolution, previous, unit, viewOf }: SeriesTableProps) {
  const { buckets, series, totals, total } = breakdown;
  const least = unit === undefined ? MONEY_DIGITS : 0;
  const room = longestFraction(
    [total, ...totals, ...(previous ?? []), ...series.flatMap(({ points }) => points)],
    least,
  );
  const text = (amount: DecimalText = ZERO) => (
    <ExactAmount amount={amount} least={least} room={room} symbol={unit === undefined ? '$' : ''} />
  );
  return (
    <section className="scroller series-table" aria-label="The chart's figures">
      <table>
        <thead>
          <tr>
            <th scope="col">Time (UTC){unit && `, in ${UNIT_NAME[unit]}`}</th>
            <th scope="col" className="number">
              Total
            </th>
            {previous && (
              <th scope="col" className="number">
                Period before
              </th>
            )}
            {series.length > 1 &&
              series.map(({ key, label, values }, rank) => (
                <th key={key} scope="col" className="number">
                  <Linked to={values && viewOf(rank, 0)}>{label}</Linked>
                </th>
              ))}
          </tr>
        </thead>
        <tbody>
          {buckets.map((bucket, index) => (
            <tr key={bucket}>
              <th scope="row">
                <Linked to={viewOf(undefined, index)}>{bucketText(bucket, resolution)}</Linked>
              </th>
              <td className="number">{text(totals[index])}</td>
              {previous && <td className="number">{index < previous.length ? text(previous[index]) : '–'}</td>}
              {series.length > 1 &&
                series.map(({ key, points }) => (
                  <td key={key} className="number">
                    {text(points[index])}
                  </td>
                ))}
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">Total</th>
            <td className="number">{text(total)}</td>
            {previous && <td />}
            {series.length > 1 &&
              series.map((each) => (
                <td key={each.key} className="number">
                  {text(each.total)}
                </td>
              ))}
          </tr>
        </tfoot>
      </table>
    </section>
  );
}

function Linked({ to, children }: { readonly to: View | undefined; readonly children: string }) {
  return to ? <ViewLink to={to}>{children}</ViewLink> : children;
}
