/** The row above the figures: what people change most. Everything else is in the options. */
import { type EpochMs, GROUP_BY_DIMENSIONS, type GroupByDimension, type Window } from '@meterline/catalog';
import { DIMENSION_LABEL } from '../breakdown/texts.js';
import { PeriodPicker } from '../period/period-picker.js';
import { navigate } from '../view/address.js';
import { type View, withGroups } from '../view/view.js';
import { Options } from './options.js';
import { Picker } from './picker.js';

interface ToolbarProps {
  readonly account: string;
  readonly view: View;
  readonly window: Window;
  readonly now: EpochMs;
  readonly workspaceReason: string | undefined;
  /** Whether the row of filters is shown. */
  readonly isFiltering: boolean;
  readonly onFilter: (isFiltering: boolean) => void;
}

export function Toolbar(props: ToolbarProps) {
  const { account, view, window, now, workspaceReason, isFiltering, onFilter } = props;
  const count = Object.keys(view.filters).length;
  return (
    <fieldset className="toolbar">
      <legend className="sr-only">What is shown</legend>
      <PeriodPicker
        period={view.period}
        window={window}
        now={now}
        onChoose={(period) => navigate(withGroups(view, { period }))}
      />
      <GroupPicker view={view} workspaceReason={workspaceReason} />
      <button
        type="button"
        className={count > 0 ? 'control active' : 'control'}
        aria-expanded={isFiltering}
        onClick={() => onFilter(!isFiltering)}
      >
        <span className="control-label">Filters</span>
        <span className="control-value">{count === 0 ? 'None' : `${count} set`}</span>
        <svg viewBox="0 0 12 12" aria-hidden="true">
          <path d={isFiltering ? 'm3 7.500 3-3 3 3' : 'm3 4.500 3 3 3-3'} />
        </svg>
      </button>
      <Options {...{ account, view, window, workspaceReason }} />
    </fieldset>
  );
}

function GroupPicker({ view, workspaceReason }: Pick<ToolbarProps, 'view' | 'workspaceReason'>) {
  const [first, second] = view.groupBy;
  const group = (...dimensions: (GroupByDimension | undefined)[]) =>
    navigate(withGroups(view, { groupBy: dimensions.filter((each) => each !== undefined) }));
  const choices = GROUP_BY_DIMENSIONS.map((value) => ({
    value,
    label: DIMENSION_LABEL[value],
    disabledReason: value === 'workspace' ? workspaceReason : undefined,
  }));
  const names = view.groupBy.map((dimension) => DIMENSION_LABEL[dimension]);
  return (
    <Picker<GroupByDimension | undefined>
      label="Group by"
      shown={names.join(', ') || 'Nothing'}
      choices={[...choices, { value: undefined, label: 'Nothing', hint: 'only the total' }]}
      chosen={first}
      onChoose={(chosen) => (chosen ? group(chosen, second === chosen ? undefined : second) : group())}
    />
  );
}
