/** The card with the figures over time: as a chart or as a table, with what a click on each bar or name opens. */
import type { ShownAccount } from '../account/use-account-view.js';
import { AlertsButton } from '../alerts/alerts-panel.js';
import { DIMENSION_LABEL } from '../breakdown/texts.js';
import { Segments } from '../controls/controls.js';
import { bucketWindow, type PeriodChoice } from '../period/period.js';
import { Skeleton } from '../states/panels.js';
import { changeView, navigate } from '../view/address.js';
import { canDrill, drillDown, zoomInto } from '../view/view.js';
import type { Target, TargetOf } from './chart-figures.js';
import { SeriesTable } from './series-table.js';
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
