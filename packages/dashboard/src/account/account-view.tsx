/** The figures, the chart and the table of an account, or what is shown when there are none. */
import { changeFrom, compareDecimals, type DecimalText, type EpochMs, upTo } from '@meterline/catalog/plain';
import { type AccountResponse, ALL_ACCOUNTS } from '@meterline/client';
import type { ReactNode } from 'react';
import { useEffect, useState } from 'react';
import { BUCKET_NOUN, peakBucket } from '../breakdown/breakdown.js';
import type { Quantity } from '../breakdown/texts.js';
import { amountText, exactText, filterText } from '../breakdown/texts.js';
import { ChartCard } from '../chart/chart-card.js';
import { Primary, Quiet } from '../controls/controls.js';
import { FilterBar } from '../controls/filters.js';
import { FilterChips, Toolbar } from '../controls/toolbar.js';
import { budgetShare, FORECAST_RULE, FORECAST_SUMMARY } from '../forecast/forecast.js';
import { bucketText, monthText, periodWindow, windowText } from '../period/period.js';
import { Empty, MessagePanel, ProblemPanel, Waiting } from '../states/panels.js';
import { problemOf } from '../states/problem.js';
import { ChangeText, ViewLink } from '../table/cells.js';
import { TableCard } from '../table/table-card.js';
import { navigate } from '../view/address.js';
import { breadcrumb, type View, withGroups } from '../view/view.js';
import type { ShownAccount } from './use-account-view.js';
import { useAccountView } from './use-account-view.js';

const MEMBERS_ONLY_SEE_ALL =
  'Only an admin of the account sees its workspaces one by one. As a member you see the account as a whole.';

const ADMINS_OF_ALL_SEE = 'Only an admin of all these accounts sees their workspaces one by one.';

interface AccountViewProps {
  readonly account: string;
  /** Undefined: not known yet, or none. */
  readonly role: AccountResponse['role'] | undefined;
  readonly view: View;
  readonly now: EpochMs;
  readonly refresh: () => void;
  /** Called with the instant that the figures on the screen are as of. */
  readonly onShown: (asOf: EpochMs) => void;
}

export function AccountView({ account, role, view, now, refresh, onShown }: AccountViewProps) {
  const shown = useAccountView(account, view, role, now);
  const { isForbidden, isStale, isEmpty, result, breakdown, first, comparisonError, awaited } = shown;
  const [isFiltering, setFiltering] = useState(false);
  useEffect(() => onShown(shown.asOf), [onShown, shown.asOf]);
  const window = periodWindow(view.period, now);
  const membersReason = account === ALL_ACCOUNTS ? ADMINS_OF_ALL_SEE : MEMBERS_ONLY_SEE_ALL;
  const workspaceReason = role === 'member' ? membersReason : undefined;
  const retry = () => void result.refetch();
  const { error } = result;

  return (
    <>
      <Toolbar {...{ view, now, workspaceReason, window, isFiltering }} onFilter={setFiltering} />
      {isFiltering && <FilterBar {...{ account, view, workspaceReason }} window={upTo(window, now)} />}
      <Breadcrumb view={view} />
      <FilterChips view={view} />
      <Waiting of={awaited} asOf={first && shown.asOf} />
      {isForbidden ? (
        <MessagePanel title="Workspaces are for admins">
          <p>{membersReason} An admin can send you the figures, or make you one.</p>
          <Primary onClick={() => navigate(withGroups(view, withoutWorkspace(view)))}>
            {account === ALL_ACCOUNTS ? 'Show them as a whole' : 'Show the account as a whole'}
          </Primary>
        </MessagePanel>
      ) : error && !breakdown ? (
        <ProblemPanel error={error} account={account} onRetry={retry} />
      ) : isEmpty ? (
        <Empty {...{ account, view, now, role }} onRefresh={refresh} />
      ) : (
        <div className={isStale ? 'content stale' : 'content'}>
          {error && <ProblemPanel error={error} account={account} onRetry={retry} />}
          {comparisonError && (
            <div className="banner" role="alert">
              <span>The period before cannot be read: {problemOf(comparisonError, account).text}</span>
              <Quiet onClick={shown.compareAgain}>Try again</Quiet>
            </div>
          )}
          <Figures shown={shown} />
          <ChartCard shown={shown} />
          <TableCard shown={shown} />
        </div>
      )}
    </>
  );
}

function withoutWorkspace({ filters, groupBy }: View): Partial<View> {
  const { workspace: _removed, ...others } = filters;
  const rest = groupBy.filter((dimension) => dimension !== 'workspace');
  return { filters: others, groupBy: rest.length > 0 ? rest : ['resource_type'] };
}

/** The steps into a group, each a way back. */
function Breadcrumb({ view }: { readonly view: View }) {
  const crumbs = breadcrumb(view);
  if (crumbs.length === 0) return null;
  return (
    <nav aria-label="Breadcrumb">
      <ol className="crumbs">
        {crumbs.map(({ field, to }) => {
          const filter = field && view.filters[field];
          const label = filter ? filterText(field, filter) : 'All usage';
          return (
            <li key={field ?? 'all'} aria-current={to ? undefined : 'page'} title={label}>
              {to ? <ViewLink to={to}>{label}</ViewLink> : label}
            </li>
          );
        })}
      </ol>
    </nav>
  );
}

/** The figures above the chart. */
interface FiguresProps {
  readonly shown: ShownAccount;
}

function Figures({ shown }: FiguresProps) {
  const { breakdown, resolution, window, unit, compared, view } = shown;
  const { isExact } = view;
  const peak = breakdown && peakBucket(breakdown.totals);
  return (
    <dl className={isExact ? 'figures exact' : 'figures'}>
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
