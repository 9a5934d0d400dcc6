/** The figures, the chart and the table of an account, or what is shown when there are none. */
import { type EpochMs, type Role, upTo } from '@meterline/catalog';
import { ALL_ACCOUNTS } from '@meterline/client';
import { useEffect, useState } from 'react';
import { filterText } from '../breakdown/texts.js';
import { ChartCard } from '../chart/chart-card.js';
import { Primary, Quiet } from '../controls/controls.js';
import { FilterBar } from '../controls/filters.js';
import { FilterChips, Toolbar } from '../controls/toolbar.js';
import { periodWindow } from '../period/period.js';
import { Empty, MessagePanel, ProblemPanel, Waiting } from '../states/panels.js';
import { problemOf } from '../states/problem.js';
import { ViewLink } from '../table/cells.js';
import { TableCard } from '../table/table-card.js';
import { navigate } from '../view/address.js';
import { breadcrumb, type View, withGroups } from '../view/view.js';
import { Figures } from './figures.js';
import { useAccountView } from './use-account-view.js';

const MEMBERS_ONLY_SEE_ALL =
  'Only an admin of the account sees its workspaces one by one. As a member you see the account as a whole.';

const ADMINS_OF_ALL_SEE = 'Only an admin of all these accounts sees their workspaces one by one.';

interface AccountViewProps {
  readonly account: string;
  /** Undefined: not known yet, or none. */
  readonly role: Role | undefined;
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
