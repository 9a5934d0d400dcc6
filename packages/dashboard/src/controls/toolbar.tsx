/** The row above the figures: period, resolution, groups, comparison and measure. */
import {
  type EpochMs,
  GROUP_BY_DIMENSIONS,
  type GroupByDimension,
  type Resolution,
  type Window,
} from '@meterline/catalog';
import { DIMENSION_LABEL } from '../breakdown/texts.js';
import { resolutionChoices, resolutionOf, usageScope } from '../metrics/question.js';
import { PeriodPicker } from '../period/period-picker.js';
import { navigate } from '../view/address.js';
import { type View, withGroups } from '../view/view.js';
import { Picker } from './picker.js';

const RESOLUTION_LABEL = {
  hourly: 'Hourly',
  daily: 'Daily',
  weekly: 'Weekly',
  monthly: 'Monthly',
} as const satisfies Record<Resolution, string>;

interface ToolbarProps {
  readonly view: View;
  readonly window: Window;
  readonly now: EpochMs;
  readonly workspaceReason: string | undefined;
}

export function Toolbar({ view, window, now, workspaceReason }: ToolbarProps) {
  const usage = usageScope(view);
  return (
    <fieldset className="toolbar">
      <legend className="sr-only">What is shown</legend>
      <PeriodPicker
        period={view.period}
        window={window}
        now={now}
        onChoose={(period) => navigate(withGroups(view, { period }))}
      />
      <ResolutionPicker view={view} window={window} />
      <BreakdownPickers view={view} workspaceReason={workspaceReason} />
      <div className="toolbar-end">
        <label className="switch">
          <input
            type="checkbox"
            checked={view.compare}
            onChange={(event) => navigate({ ...view, compare: event.target.checked })}
          />
          <span>Compare with previous period</span>
        </label>
        <fieldset className="segments">
          <legend className="sr-only">Measure</legend>
          <button
            type="button"
            aria-pressed={view.measure === 'cost' || usage.unit === undefined}
            onClick={() => navigate({ ...view, measure: 'cost' })}
          >
            Cost
          </button>
          <span className="has-tooltip">
            <button
              type="button"
              aria-pressed={view.measure === 'usage' && usage.unit !== undefined}
              aria-disabled={usage.unit === undefined}
              aria-describedby={usage.unit === undefined ? 'usage-reason' : undefined}
              onClick={() => usage.unit !== undefined && navigate({ ...view, measure: 'usage' })}
            >
              Usage
            </button>
            {usage.unit === undefined && (
              <span className="button-tooltip" role="tooltip" id="usage-reason">
                {usage.reason}
              </span>
            )}
          </span>
        </fieldset>
      </div>
    </fieldset>
  );
}

function ResolutionPicker({ view, window }: Pick<ToolbarProps, 'view' | 'window'>) {
  const automatic = resolutionOf({ ...view, resolution: undefined }, window);
  const applied = resolutionOf(view, window);
  return (
    <Picker<Resolution | undefined>
      label="Resolution"
      shown={RESOLUTION_LABEL[applied]}
      choices={[
        { value: undefined, label: 'Automatic', hint: RESOLUTION_LABEL[automatic].toLowerCase() },
        ...resolutionChoices(window).map(({ resolution, disabledReason }) => ({
          value: resolution,
          label: RESOLUTION_LABEL[resolution],
          disabledReason,
        })),
      ]}
      chosen={view.resolution === undefined ? undefined : applied}
      onChoose={(resolution) => navigate({ ...view, resolution })}
    />
  );
}

function BreakdownPickers({ view, workspaceReason }: Pick<ToolbarProps, 'view' | 'workspaceReason'>) {
  const [first, second] = view.groupBy;
  const group = (...dimensions: (GroupByDimension | undefined)[]) =>
    navigate(withGroups(view, { groupBy: dimensions.filter((each) => each !== undefined) }));
  const choices = GROUP_BY_DIMENSIONS.map((value) => ({
    value,
    label: DIMENSION_LABEL[value],
    disabledReason: value === 'workspace' ? workspaceReason : undefined,
  }));
  return (
    <>
      <Picker<GroupByDimension | undefined>
        label="Group by"
        shown={first ? DIMENSION_LABEL[first] : 'Nothing'}
        choices={[...choices, { value: undefined, label: 'Nothing', hint: 'only the total' }]}
        chosen={first}
        onChoose={(chosen) => (chosen ? group(chosen, second === chosen ? undefined : second) : group())}
      />
      {first && (
        <Picker<GroupByDimension | undefined>
          label="and"
          shown={second ? DIMENSION_LABEL[second] : 'Nothing else'}
          choices={[...choices.filter(({ value }) => value !== first), { value: undefined, label: 'Nothing else' }]}
          chosen={second}
          onChoose={(chosen) => group(first, chosen)}
        />
      )}
    </>
  );
}
