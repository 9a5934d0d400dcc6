/** The chart's figures as a table: a row for each bucket, a column for each series. */
import { type DecimalText, ZERO } from '@meterline/catalog';
import { bucketText } from '../period/period-text.js';
import { Amount, roomOf, ViewLink } from '../table/cells.js';
import type { View } from '../view/view.js';
import type { ChartFigures } from './chart-figures.js';

interface SeriesTableProps {
  readonly figures: ChartFigures;
  readonly isExact: boolean;
  /** What a bucket opens; undefined: nothing. */
  readonly viewOf: (series: number | undefined, bucket: number) => View | undefined;
  readonly groupViewOf: (series: number) => View | undefined;
}

export function SeriesTable({ figures, isExact, viewOf, groupViewOf }: SeriesTableProps) {
  const { breakdown, resolution, previous, unit, toCome, unfinished, isCumulative } = figures;
  const { series, totals, total } = breakdown;
  const shownSeries = series.length > 1 ? series : [];
  const room = roomOf([total, ...totals, ...(previous?.points ?? []), ...series.flatMap(({ points }) => points)], unit);
  const text = (amount: DecimalText = ZERO) => <Amount {...{ amount, unit, isExact, room }} />;
  return (
    <section className="scroller series-table" aria-label="The chart's figures">
      <table>
        <thead>
          <tr>
            <th scope="col">Time (UTC){unit && `, in ${unit.name}`}</th>
            <th scope="col" className="number">
              Total
            </th>
            {previous && (
              <th scope="col" className="number">
                {previous.distance}
              </th>
            )}
            {toCome && (
              <th scope="col" className="number">
                Forecast
              </th>
            )}
            {shownSeries.map(({ key, label }, rank) => (
              <th key={key} scope="col" className="number series-name" title={label}>
                <Linked to={groupViewOf(rank)}>{label}</Linked>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {figures.buckets.map((bucket, index) => {
            const isAhead = unfinished !== undefined && index > unfinished;
            return (
              <tr key={bucket}>
                <th scope="row">
                  <Linked to={isAhead ? undefined : viewOf(undefined, index)}>{bucketText(bucket, resolution)}</Linked>
                  {index === unfinished && <span className="beside"> so far</span>}
                </th>
                <td className="number">{isAhead ? '–' : text(totals[index])}</td>
                {previous && <td className="number">{previous.points[index] ? text(previous.points[index]) : '–'}</td>}
                {toCome && <td className="number">{toCome[index] === ZERO ? '–' : text(toCome[index])}</td>}
                {shownSeries.map(({ key, points }) => (
                  <td key={key} className="number">
                    {isAhead ? '–' : text(points[index])}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
        {!isCumulative && (
          <tfoot>
            <tr>
              <th scope="row">Total</th>
              <td className="number">{text(total)}</td>
              {previous && <td />}
              {toCome && <td />}
              {shownSeries.map((each) => (
                <td key={each.key} className="number">
                  {text(each.total)}
                </td>
              ))}
            </tr>
          </tfoot>
        )}
      </table>
    </section>
  );
}

function Linked({ to, children }: { readonly to: View | undefined; readonly children: string }) {
  return to ? <ViewLink to={to}>{children}</ViewLink> : children;
}
