/** The card with the figures over time: as a chart or as a table, with what a click on each bar or name opens. */
import { UNIT_NAME, type Unit } from '@meterline/catalog';
import { lazy, Suspense } from 'react';
import type { ShownAccount } from '../account/use-account-view.js';
import { DIMENSION_LABEL } from '../breakdown/texts.js';
import { bucketText, bucketWindow } from '../period/period.js';
import { ChartSkeleton } from '../states/panels.js';
import { navigate } from '../view/address.js';
import { canDrill, drillDown, type View, withGroups } from '../view/view.js';
import { SeriesTable } from './series-table.js';

/** Marks when the first view is drawn; benchmarks and tests read it. */
const FIRST_VIEW = 'meterline:first-view';

/** ECharts is most of the page's code. It loads while the first answer is on its way, and the rest runs without it. */
const chart = import('./usage-chart.js');
const UsageChart = lazy(async () => ({ default: (await chart).UsageChart }));

interface ChartCardProps {
  readonly view: View;
  readonly shown: ShownAccount;
}

export function ChartCard({ view, shown }: ChartCardProps) {
  const { breakdown, resolution, unit } = shown;
  const previous = shown.before && shown.previousSeries;
  const target = (series: number | undefined, bucket: number) => targetOf(view, shown, series, bucket);
  return (
    <section className="card" aria-label="Over time" aria-busy={breakdown === undefined}>
      <header className="card-header">
        <h2>{title(view, unit)}</h2>
        <fieldset className="segments">
          <legend className="sr-only">How the figures are shown</legend>
          <button type="button" aria-pressed={!view.asTable} onClick={() => navigate({ ...view, asTable: false })}>
            Chart
          </button>
          <button type="button" aria-pressed={view.asTable} onClick={() => navigate({ ...view, asTable: true })}>
            Table
          </button>
        </fieldset>
      </header>
      {!breakdown && <ChartSkeleton />}
      {breakdown && view.asTable && (
        <SeriesTable
          {...{ breakdown, resolution, previous, unit }}
          viewOf={(series, bucket) => target(series, bucket)?.view}
        />
      )}
      {breakdown && !view.asTable && (
        <Suspense fallback={<ChartSkeleton />}>
          <UsageChart
            {...{ breakdown, resolution, previous, unit }}
            onDrawn={markFirstView}
            onChoose={(series, bucket) => {
              const to = target(series, bucket)?.view;
              if (to) navigate(to);
            }}
            hintOf={(series, bucket) => target(series, bucket)?.hint}
          />
        </Suspense>
      )}
    </section>
  );
}

/** Opens the group; without a group, or when it cannot be broken down further, the bucket's time. */
function targetOf(
  view: View,
  { resolution, window, breakdown }: ShownAccount,
  series: number | undefined,
  bucket: number,
) {
  const chosen = series === undefined ? undefined : breakdown?.series[series];
  if (chosen?.values && canDrill(view)) {
    return { view: drillDown(view, chosen.values), hint: `Click to break down ${chosen.label}` };
  }
  if (resolution === 'hourly') return undefined;
  const start = breakdown?.buckets[bucket] ?? window.startTime;
  const { startTime, endTime } = bucketWindow(start, resolution, window);
  const period = { from: startTime, to: endTime };
  return {
    view: withGroups(view, { period, resolution: undefined }),
    hint: series === undefined ? undefined : `Click to zoom into ${bucketText(start, resolution)}`,
  };
}

function title({ groupBy }: View, unit: Unit | undefined): string {
  const measure = unit === undefined ? 'Cost' : `Usage in ${UNIT_NAME[unit]}`;
  const by = groupBy.map((dimension) => DIMENSION_LABEL[dimension].toLowerCase()).join(' and ');
  return by ? `${measure} by ${by}` : measure;
}

function markFirstView(): void {
  if (performance.getEntriesByName(FIRST_VIEW).length === 0) performance.mark(FIRST_VIEW);
}
