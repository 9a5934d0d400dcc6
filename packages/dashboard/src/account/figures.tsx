/** The figures above the chart. */
import type { DecimalText, EpochMs, Unit, Window } from '@meterline/catalog';
import { BUCKET_NOUN, peakBucket } from '../breakdown/breakdown.js';
import { amountText, changeFrom, changePercentText, differenceText } from '../breakdown/texts.js';
import { bucketText, monthText, windowText } from '../period/period.js';
import type { ShownAccount } from './use-account-view.js';

interface FiguresProps {
  readonly shown: ShownAccount;
  /** Undefined: not compared; null: not here yet. */
  readonly previous: { readonly window: Window; readonly total: DecimalText } | null | undefined;
  readonly now: EpochMs;
}

export function Figures({ shown, previous, now }: FiguresProps) {
  const { breakdown, resolution, window, unit, monthToDate } = shown;
  const peak = breakdown && peakBucket(breakdown.totals);
  return (
    <dl className="figures">
      <Figure
        title={unit === undefined ? 'Cost' : 'Usage'}
        value={breakdown && amountText(breakdown.total, unit)}
        note={`${windowText(window)} UTC`}
        main
      />
      {previous !== undefined && (
        <Figure
          title="Change"
          value={
            breakdown && previous ? (
              <ChangeValue now={breakdown.total} before={previous.total} unit={unit} />
            ) : undefined
          }
          note={
            previous
              ? `${amountText(previous.total, unit)} in ${windowText(previous.window, now)}`
              : 'from the period before'
          }
        />
      )}
      <Figure
        title={`Highest ${BUCKET_NOUN[resolution]}`}
        value={breakdown && (peak === undefined ? '–' : amountText(breakdown.totals[peak] ?? breakdown.total, unit))}
        note={breakdown && peak !== undefined ? bucketText(breakdown.buckets[peak] ?? 0, resolution) : '\u00a0'}
      />
      <Figure
        title="Month to date"
        value={monthToDate === null ? undefined : monthToDate === undefined ? '–' : amountText(monthToDate, undefined)}
        note={monthText(now)}
      />
    </dl>
  );
}

interface FigureProps {
  readonly title: string;
  /** Undefined: not here yet. */
  readonly value: React.ReactNode;
  readonly note: string;
  readonly main?: boolean;
}

function Figure({ title, value, note, main = false }: FigureProps) {
  return (
    <div className={main ? 'figure main' : 'figure'}>
      <dt>{title}</dt>
      <dd className="figure-value">{value ?? <span className="placeholder" />}</dd>
      <dd className="figure-note" title={note}>
        {note}
      </dd>
    </div>
  );
}

interface ChangeValueProps {
  readonly now: DecimalText;
  readonly before: DecimalText;
  readonly unit: Unit | undefined;
}

function ChangeValue({ now, before, unit }: ChangeValueProps) {
  const change = changeFrom(before, now);
  return (
    <>
      {differenceText(change, unit)} <span className={`change ${change.direction}`}>{changePercentText(change)}</span>
    </>
  );
}
