/** The figures above the chart. */
import { changeFrom, compareDecimals, type DecimalText, type EpochMs, type Window } from '@meterline/catalog';
import { BUCKET_NOUN, peakBucket } from '../breakdown/breakdown.js';
import type { Quantity } from '../breakdown/quantities.js';
import { amountText, changePercentText, differenceText, exactDifferenceText, exactText } from '../breakdown/texts.js';
import { budgetShare, useBudget } from '../forecast/budget.js';
import { FORECAST_RULE, FORECAST_SUMMARY, type MonthFigures } from '../forecast/forecast.js';
import { bucketText, monthText, windowText } from '../period/period-text.js';
import { hasFilters } from '../view/filters.js';
import type { View } from '../view/view.js';
import type { ShownAccount } from './use-account-view.js';

interface FiguresProps {
  readonly account: string;
  readonly view: View;
  readonly shown: ShownAccount;
  /** Undefined: not compared; null: not here yet. */
  readonly previous:
    | { readonly window: Window; readonly distance: string; readonly total: DecimalText }
    | null
    | undefined;
}

export function Figures({ account, view, shown, previous }: FiguresProps) {
  const { breakdown, resolution, window, unit, month, asOf } = shown;
  const { isExact } = view;
  const peak = breakdown && peakBucket(breakdown.totals);
  return (
    <dl className="figures">
      <Figure
        title={unit === undefined ? 'Cost' : 'Usage'}
        value={breakdown && <FigureAmount amount={breakdown.total} {...{ unit, isExact }} />}
        note={`${windowText(window)} UTC`}
        isMain
      />
      {previous !== undefined && (
        <Figure
          title="Change"
          value={
            breakdown && previous ? (
              <ChangeValue now={breakdown.total} before={previous.total} {...{ unit, isExact }} />
            ) : undefined
          }
          note={
            previous
              ? `${previous.distance}: ${amountText(previous.total, unit)} in ${windowText(previous.window, asOf)}`
              : 'from the period before'
          }
        />
      )}
      <MonthToDate {...{ account, view, month, asOf }} />
      <Forecast {...{ account, view, month, asOf }} />
      <Figure
        isPeak
        title={`Highest ${BUCKET_NOUN[resolution]}`}
        value={
          breakdown &&
          (peak === undefined ? (
            '–'
          ) : (
            <FigureAmount amount={breakdown.totals[peak] ?? breakdown.total} {...{ unit, isExact }} />
          ))
        }
        note={breakdown && peak !== undefined ? bucketText(breakdown.buckets[peak] ?? 0, resolution) : '\u00a0'}
      />
    </dl>
  );
}

interface MonthProps {
  readonly account: string;
  readonly view: View;
  /** Null: not here yet; undefined: it cannot be read. */
  readonly month: MonthFigures | null | undefined;
  readonly asOf: EpochMs;
}

/** A budget is for all that the account uses. */
function useShownBudget({ account, view }: MonthProps): DecimalText | undefined {
  const budget = useBudget(account);
  return hasFilters(view.filters) ? undefined : budget;
}

function MonthToDate(props: MonthProps) {
  const { month, asOf, view } = props;
  const budget = useShownBudget(props);
  return (
    <Figure
      title="Month to date"
      value={monthValue(month, month?.toDate, view.isExact)}
      note={
        budget && month
          ? `${budgetShare(month.toDate, budget)} of the budget of ${amountText(budget, undefined)}`
          : monthText(asOf)
      }
    />
  );
}

function Forecast(props: MonthProps) {
  const { month, asOf, view } = props;
  const budget = useShownBudget(props);
  const forecast = month?.forecast;
  const isOver = budget !== undefined && forecast !== undefined && compareDecimals(forecast, budget) > 0;
  return (
    <Figure
      title={`Forecast of ${monthText(asOf).split(' ')[0]}`}
      value={
        <>
          {monthValue(month, forecast, view.isExact)}
          {budget && forecast && (
            <span className={isOver ? 'change up' : 'change'}> {budgetShare(forecast, budget)} of budget</span>
          )}
        </>
      }
      note={month && !forecast ? 'Needs one full day of usage.' : FORECAST_SUMMARY}
      explanation={FORECAST_RULE}
    />
  );
}

function monthValue(month: MonthFigures | null | undefined, amount: DecimalText | undefined, isExact: boolean) {
  if (month === null) return <span className="placeholder" />;
  return amount === undefined ? '–' : <FigureAmount amount={amount} unit={undefined} isExact={isExact} />;
}

interface FigureAmountProps {
  readonly amount: DecimalText;
  readonly unit: Quantity | undefined;
  readonly isExact: boolean;
}

function FigureAmount({ amount, unit, isExact }: FigureAmountProps) {
  const exact = exactText(amount, unit);
  return <span title={exact}>{isExact ? exact : amountText(amount, unit)}</span>;
}

interface FigureProps {
  readonly title: string;
  /** Undefined: not here yet. */
  readonly value: React.ReactNode;
  readonly note: string;
  readonly isMain?: boolean;
  /** More than the note, on hover. */
  readonly explanation?: string;
  readonly isPeak?: boolean;
}

function Figure({ title, value, note, isMain = false, isPeak = false, explanation = note }: FigureProps) {
  return (
    <div className={isMain ? 'figure main' : isPeak ? 'figure peak' : 'figure'}>
      <dt>{title}</dt>
      <dd className="figure-value">{value ?? <span className="placeholder" />}</dd>
      <dd className="figure-note" title={explanation}>
        {note}
      </dd>
    </div>
  );
}

interface ChangeValueProps {
  readonly now: DecimalText;
  readonly before: DecimalText;
  readonly unit: Quantity | undefined;
  readonly isExact: boolean;
}

function ChangeValue({ now, before, unit, isExact }: ChangeValueProps) {
  const change = changeFrom(before, now);
  const exact = exactDifferenceText(change, unit);
  return (
    <>
      <span title={exact}>{isExact ? exact : differenceText(change, unit)}</span>{' '}
      <span className={`change ${change.direction}`}>{changePercentText(change)}</span>
    </>
  );
}
