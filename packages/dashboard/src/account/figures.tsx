/** The figures above the chart. */
import { changeFrom, compareDecimals, type DecimalText } from '@meterline/catalog';
import type { ReactNode } from 'react';
import { BUCKET_NOUN, peakBucket } from '../breakdown/breakdown.js';
import type { Quantity } from '../breakdown/texts.js';
import { amountText, exactText } from '../breakdown/texts.js';
import { budgetShare, FORECAST_RULE, FORECAST_SUMMARY } from '../forecast/forecast.js';
import { bucketText, monthText, windowText } from '../period/period.js';
import { ChangeText } from '../table/cells.js';
import type { ShownAccount } from './use-account-view.js';

interface FiguresProps {
  readonly shown: ShownAccount;
}

export function Figures({ shown }: FiguresProps) {
  const { breakdown, resolution, window, unit, compared, view } = shown;
  const { isExact } = view;
  const peak = breakdown && peakBucket(breakdown.totals);
  return (
    <dl className="figures">
      <Figure title={unit === undefined ? 'Cost' : 'Usage'} note={`${windowText(window)} UTC`} isMain>
        {breakdown && <FigureAmount amount={breakdown.total} {...{ unit, isExact }} />}
      </Figure>
      {compared && <ChangeFigure shown={shown} />}
      <MonthFigures shown={shown} />
      <Figure
        isPeak
        title={`Highest ${BUCKET_NOUN[resolution]}`}
        note={peak === undefined ? '\u00a0' : bucketText(breakdown?.buckets[peak] ?? 0, resolution)}
      >
        {breakdown && (
          <FigureAmount amount={peak === undefined ? undefined : breakdown.totals[peak]} {...{ unit, isExact }} />
        )}
      </Figure>
    </dl>
  );
}

function ChangeFigure({ shown }: FiguresProps) {
  const { breakdown, unit, compared, previousTotals, comparisonError, asOf, view } = shown;
  if (!compared || !breakdown || !previousTotals) {
    return (
      <Figure title="Change" note="from the period before">
        {comparisonError && '–'}
      </Figure>
    );
  }
  const before = previousTotals.shown;
  const note = `${compared.distance}: ${amountText(before, unit)} in ${windowText(compared.window, asOf)}`;
  return (
    <Figure title="Change" note={note}>
      <ChangeText change={changeFrom(before, breakdown.total)} unit={unit} isExact={view.isExact} />
    </Figure>
  );
}

/** What the month cost up to now, and will cost, each beside the budget. */
function MonthFigures({ shown: { view, month, asOf, unit, budget } }: FiguresProps) {
  const forecast = month?.forecast;
  const isOver = budget !== undefined && forecast !== undefined && compareDecimals(forecast, budget) > 0;
  // The cost of the period is the same figure.
  const isShownAlready = 'preset' in view.period && view.period.preset === 'month' && !unit && !budget;
  const toDate = month && <FigureAmount amount={month.toDate} unit={undefined} isExact={view.isExact} />;
  const spent =
    budget && month && `${budgetShare(month.toDate, budget)} of the budget of ${amountText(budget, undefined)}`;
  return (
    <>
      {!isShownAlready && (
        <Figure title="Month to date" note={spent || monthText(asOf)}>
          {month === null ? undefined : (toDate ?? '–')}
        </Figure>
      )}
      <Figure
        title={`Forecast of ${monthText(asOf).split(' ')[0]}`}
        note={month && !forecast ? 'Needs one full day of usage.' : FORECAST_SUMMARY}
        explanation={FORECAST_RULE}
      >
        {month === null ? undefined : (
          // An estimate has no exact digits.
          <FigureAmount amount={forecast} unit={undefined} isExact={false} />
        )}
        {budget && forecast && (
          <span className={isOver ? 'change up' : 'change'}> {budgetShare(forecast, budget)} of budget</span>
        )}
      </Figure>
    </>
  );
}

interface FigureAmountProps {
  /** Undefined: there is none. */
  readonly amount: DecimalText | undefined;
  readonly unit: Quantity | undefined;
  readonly isExact: boolean;
}

function FigureAmount({ amount, unit, isExact }: FigureAmountProps) {
  if (amount === undefined) return '–';
  const exact = exactText(amount, unit);
  return <span title={exact}>{isExact ? exact : amountText(amount, unit)}</span>;
}

interface FigureProps {
  readonly title: string;
  readonly note: string;
  /** More than the note, on hover. */
  readonly explanation?: string;
  readonly isMain?: boolean;
  readonly isPeak?: boolean;
  /** Nothing: it is not here yet. */
  readonly children: ReactNode;
}

function Figure({ title, note, explanation = note, isMain = false, isPeak = false, children }: FigureProps) {
  const isHere = Array.isArray(children) ? children.some(Boolean) : Boolean(children);
  return (
    <div className={isMain ? 'figure main' : isPeak ? 'figure peak' : 'figure'}>
      <dt>{title}</dt>
      <dd className="figure-value">{isHere ? children : <span className="placeholder" />}</dd>
      <dd className="figure-note" title={explanation}>
        {note}
      </dd>
    </div>
  );
}
