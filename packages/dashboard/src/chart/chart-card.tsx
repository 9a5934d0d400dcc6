/** The card with the figures over time: as a chart or as a table, with what a click on each bar or name opens. */
import type { Role } from '@meterline/catalog';
import { useMemo } from 'react';
import type { ShownAccount } from '../account/use-account-view.js';
import { AlertsButton } from '../alerts/alerts-button.js';
import type { Quantity } from '../breakdown/texts.js';
import { DIMENSION_LABEL } from '../breakdown/texts.js';
import { Segments } from '../controls/controls.js';
import { bucketWindow } from '../period/period.js';
import { Skeleton } from '../states/panels.js';
import { navigate } from '../view/address.js';
import { canDrill, drillDown, type View, zoomInto } from '../view/view.js';
import { chartFigures } from './chart-figures.js';
import { SeriesTable } from './series-table.js';
import { UsageChart } from './usage-chart.js';

/** Marks when the first view is drawn; benchmarks and tests read it. */
const FIRST_VIEW = 'meterline:first-view';

interface ChartCardProps {
  readonly account: string;
  readonly role: Role | undefined;
  readonly view: View;
  readonly shown: ShownAccount;
}

export function ChartCard({ account, role, view, shown }: ChartCardProps) {
  const { breakdown, window, resolution, unit, asOf, month, budget, alerts, previousSeries: previous } = shown;
  const figures = useMemo(
    () =>
      breakdown &&
      chartFigures({
        breakdown,
        window,
        resolution,
        unit,
        asOf,
        isCumulative: view.isCumulative,
        toCome: month?.toCome,
        previous,
        budget,
      }),
    [breakdown, window, resolution, unit, asOf, view.isCumulative, month, previous, budget],
  );
  const target = (series: number | undefined, bucket: number) => targetOf(view, shown, series, bucket);
  const zoom = (first: number, last: number) => navigate(zoomInto(view, rangeOf(shown, first, last)));
  return (
    <section className="card" aria-label="Over time" aria-busy={breakdown === undefined}>
      <header className="card-header">
        <h2>{title(view, unit)}</h2>
        <div className="chart-tools">
          {alerts && <AlertsButton {...{ account, alerts }} isAdmin={role === 'admin'} filters={shown.filters} />}
          <Segments
            legend="How the figures are shown"
            choices={['Chart', 'Table']}
            chosen={view.asTable ? 'Table' : 'Chart'}
            onChoose={(form) => navigate({ ...view, asTable: form === 'Table' })}
          />
        </div>
      </header>
      {!figures && <Skeleton of="chart" />}
      {figures && view.asTable && (
        <SeriesTable
          figures={figures}
          isExact={view.isExact}
          viewOf={(series, bucket) => target(series, bucket)?.view}
          groupViewOf={(series) => {
            const values = figures.breakdown.series[series]?.values;
            return values && canDrill(view) ? drillDown(view, values) : undefined;
          }}
        />
      )}
      {figures && !view.asTable && (
        <UsageChart
          figures={figures}
          onDrawn={markFirstView}
          onZoom={zoom}
          onChoose={(series, bucket) => {
            const to = target(series, bucket)?.view;
            if (to) navigate(to);
          }}
          hintOf={(series, bucket) => target(series, bucket)?.hint}
        />
      )}
    </section>
  );
}

/** Opens the group in the bucket's time; without a group, or when it cannot be broken down further, that time alone. */
function targetOf(view: View, shown: ShownAccount, series: number | undefined, bucket: number) {
  const { resolution, breakdown } = shown;
  const start = breakdown?.buckets[bucket];
  if (start === undefined) return undefined;
  const period = rangeOf(shown, bucket, bucket);
  const chosen = series === undefined ? undefined : breakdown?.series[series];
  if (chosen?.values && canDrill(view)) {
    return { view: drillDown(view, chosen.values, period), hint: `breaks down ${chosen.label}` };
  }
  if (resolution === 'hourly') return undefined;
  return { view: zoomInto(view, period), hint: 'zooms in; dragging chooses a range' };
}

function rangeOf({ breakdown, resolution, window }: ShownAccount, first: number, last: number) {
  const { startTime } = bucketWindow(breakdown?.buckets[first] ?? window.startTime, resolution, window);
  const { endTime } = bucketWindow(breakdown?.buckets[last] ?? window.startTime, resolution, window);
  return { from: startTime, to: endTime };
}

function title({ groupBy, isCumulative }: View, unit: Quantity | undefined): string {
  const measure = unit === undefined ? 'Cost' : `Usage in ${unit.name}`;
  const by = groupBy.map((dimension) => DIMENSION_LABEL[dimension].toLowerCase()).join(' and ');
  return `${isCumulative ? 'Cumulative ' : ''}${isCumulative ? lowered(measure) : measure}${by ? ` by ${by}` : ''}`;
}

function markFirstView(): void {
  if (performance.getEntriesByName(FIRST_VIEW).length === 0) performance.mark(FIRST_VIEW);
}

function lowered(text: string): string {
  return `${text.charAt(0).toLowerCase()}${text.slice(1)}`;
}
