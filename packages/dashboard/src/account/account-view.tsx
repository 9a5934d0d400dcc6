/** Renders an account: the controls, the figures, the chart and the table, or instead an empty state or an error. */
import { changeFrom, compareDecimals, type EpochMs, periodWindow, upTo } from '@meterline/catalog/plain';
import { type AccountResponse, ALL_ACCOUNTS } from '@meterline/client';
import type { ReactNode } from 'react';
import { useEffect, useState } from 'react';
import { BUCKET_NOUN, peakBucket } from '../breakdown/breakdown.js';
import { ChartCard } from '../chart/chart-card.js';
import { PrimaryButton } from '../controls/controls.js';
import { FilterBar } from '../controls/filters.js';
import { FilterChips, Toolbar } from '../controls/toolbar.js';
import { budgetShare, FORECAST_RULE, FORECAST_SUMMARY } from '../forecast/forecast.js';
import { amountText, filterText } from '../format/texts.js';
import { bucketText, monthText, windowText } from '../period/period.js';
import { ComparisonProblem, EmptyState, MessagePanel, ProblemPanel, RetryBanner } from '../states/panels.js';
import { Amount, ChangeText, ViewLink } from '../table/cells.js';
import { TableCard } from '../table/table-card.js';
import { navigate } from '../view/address.js';
import { breadcrumb, type View, withGroups } from '../view/view.js';
import { type Comparison, useComparison } from './use-comparison.js';
import { type Costs, useCosts } from './use-costs.js';
import { useMonth } from './use-month.js';

const ADMINS_SEE_WORKSPACES =
  'Only admins of this account can break it down by workspace. As a member, you see the account as a whole.';

const ADMINS_OF_ALL_SEE_WORKSPACES = 'To group all accounts by workspace, you must be an admin of each of them.';

interface AccountViewProps {
  readonly account: string;
  /** The user's role in the account, or undefined if unknown, or if the user has no role. */
  readonly role: AccountResponse['role'] | undefined;
  readonly view: View;
  readonly now: EpochMs;
  readonly refresh: () => void;
  readonly onShown: (asOf: EpochMs) => void;
}

export function AccountView({ account, role, view, now, refresh, onShown }: AccountViewProps) {
  const costs = useCosts(account, view, role, now);
  const comparison = useComparison(costs);
  const { isForbidden, isStale, isEmpty, result, breakdown, first, asOf } = costs;
  const [isFiltering, setFiltering] = useState(false);
  useEffect(() => onShown(asOf), [onShown, asOf]);
  const window = periodWindow(view.period, now);
  const membersReason = account === ALL_ACCOUNTS ? ADMINS_OF_ALL_SEE_WORKSPACES : ADMINS_SEE_WORKSPACES;
  const workspaceReason = role === 'member' ? membersReason : undefined;
  const retry = () => void result.refetch();
  const { error } = result;

  return (
    <>
      <Toolbar
        {...{ account, view, now, workspaceReason, window, isFiltering }}
        isAdmin={role === 'admin'}
        onFilter={setFiltering}
      />
      {isFiltering && <FilterBar {...{ account, view, workspaceReason }} window={upTo(window, now)} />}
      <Breadcrumb view={view} />
      <FilterChips view={view} />
      <RetryBanner asOf={first && asOf} />
      {isForbidden ? (
        <MessagePanel title="Only admins can see workspaces">
          <p>{membersReason} Ask an admin for the data, or for the admin role.</p>
          <PrimaryButton onClick={() => navigate(withGroups(view, withoutWorkspace(view)))}>
            Show without workspaces
          </PrimaryButton>
        </MessagePanel>
      ) : error && !breakdown ? (
        <ProblemPanel error={error} account={account} onRetry={retry} />
      ) : isEmpty ? (
        <EmptyState {...{ account, view, now, role }} onRefresh={refresh} />
      ) : (
        <div className={isStale ? 'content stale' : 'content'}>
          {error && <ProblemPanel error={error} account={account} onRetry={retry} />}
          {comparison.error && <ComparisonProblem error={comparison.error} account={account} />}
          <Figures {...{ costs, comparison }} />
          <ChartCard costs={costs} />
          <TableCard costs={costs} />
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

interface FiguresProps {
  readonly costs: Costs;
  readonly comparison: Comparison;
}

function Figures({ costs, comparison }: FiguresProps) {
  const { breakdown, resolution, window, unit, view } = costs;
  const { isExact } = view;
  const peak = breakdown && peakBucket(breakdown.totals);
  const highest = peak === undefined ? undefined : breakdown?.totals[peak];
  return (
    <dl className={isExact ? 'figures exact' : 'figures'}>
      <Figure title={unit === undefined ? 'Cost' : 'Usage'} note={`${windowText(window)} UTC`} isMain>
        {breakdown && <Amount amount={breakdown.total} {...{ unit, isExact }} />}
      </Figure>
      {comparison.compared && <ChangeFigure {...{ costs, comparison }} />}
      <MonthFigures costs={costs} />
      <Figure
        isPeak
        title={`Highest ${BUCKET_NOUN[resolution]}`}
        note={peak === undefined ? '\u00a0' : bucketText(breakdown?.buckets[peak] ?? 0, resolution)}
      >
        {breakdown && (highest === undefined ? '–' : <Amount amount={highest} {...{ unit, isExact }} />)}
      </Figure>
    </dl>
  );
}

function ChangeFigure({ costs: { breakdown, unit, asOf, view }, comparison }: FiguresProps) {
  const { compared, totals, error } = comparison;
  if (!compared || !breakdown || !totals) {
    return (
      <Figure title="Change" note="from the previous period">
        {error && '–'}
      </Figure>
    );
  }
  const note = `${compared.distance}: ${amountText(totals.amount, unit)} in ${windowText(compared.window, asOf)}`;
  return (
    <Figure title="Change" note={note}>
      <ChangeText change={changeFrom(totals.amount, breakdown.total)} unit={unit} isExact={view.isExact} />
    </Figure>
  );
}

/** Shows the cost of the month so far and its forecast, each compared with the budget. */
function MonthFigures({ costs }: Pick<FiguresProps, 'costs'>) {
  const { view, asOf, unit } = costs;
  const { month, budget } = useMonth(costs);
  const forecast = month?.forecast;
  const isOver = budget !== undefined && forecast !== undefined && compareDecimals(forecast, budget) > 0;
  // Do not repeat the amount of the main figure.
  const isDuplicate = 'preset' in view.period && view.period.preset === 'month' && !unit && !budget;
  const spent =
    budget && month && `${budgetShare(month.toDate, budget)} of the budget of ${amountText(budget, undefined)}`;
  return (
    <>
      {!isDuplicate && (
        <Figure title="Month to date" note={spent || monthText(asOf)}>
          {month === undefined
            ? '–'
            : month && <Amount amount={month.toDate} unit={undefined} isExact={view.isExact} />}
        </Figure>
      )}
      <Figure
        title={`${monthText(asOf).split(' ')[0]} forecast`}
        note={month && !forecast ? 'Requires one full day of usage.' : FORECAST_SUMMARY}
        explanation={FORECAST_RULE}
      >
        {/* The forecast is an estimate, so it is never shown with every digit. */}
        {month !== null && (forecast ? <Amount amount={forecast} unit={undefined} isExact={false} /> : '–')}
        {budget && forecast && (
          <span className={isOver ? 'change up' : 'change'}> {budgetShare(forecast, budget)} of budget</span>
        )}
      </Figure>
    </>
  );
}

interface FigureProps {
  readonly title: string;
  readonly note: string;
  readonly explanation?: string;
  readonly isMain?: boolean;
  readonly isPeak?: boolean;
  readonly children: ReactNode;
}

function Figure({ title, note, explanation = note, isMain = false, isPeak = false, children }: FigureProps) {
  const isLoaded = Array.isArray(children) ? children.some(Boolean) : Boolean(children);
  return (
    <div className={isMain ? 'figure main' : isPeak ? 'figure peak' : 'figure'}>
      <dt>{title}</dt>
      <dd className="figure-value">{isLoaded ? children : <span className="placeholder" />}</dd>
      <dd className="figure-note" title={explanation}>
        {note}
      </dd>
    </div>
  );
}
