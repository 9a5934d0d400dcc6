/** Renders the controls above the figures: period, grouping, filters and options. */
import {
  ENTRY_FIELD,
  type EpochMs,
  GROUP_BY_DIMENSIONS,
  METRICS_DIMENSIONS,
  type MetricsDimension,
  MS_PER_DAY,
  type PeriodChoice,
  PRESETS,
  plusMonths,
  type Resolution,
  type Window,
} from '@meterline/catalog/plain';
import { ALL_ACCOUNTS } from '@meterline/client';
import { type FormEvent, useState } from 'react';
import { DIMENSION_LABEL, FIELD_LABEL, filterText } from '../format/texts.js';
import { measureOf, resolutionChoices, resolutionOf, usageScope } from '../metrics/query.js';
import { dateText, monthChoices, monthOf, periodText, windowText } from '../period/period.js';
import { navigate } from '../view/address.js';
import { SavedViews } from '../view/saved-views.js';
import { hasFilters, type View, withFilter, withGroups } from '../view/view.js';
import { Field, Popover, PrimaryButton, Switch, TextButton } from './controls.js';
import { type Choice, ControlText, Menu, Select } from './lists.js';

const RESOLUTION_LABEL = {
  hourly: 'Hourly',
  daily: 'Daily',
  weekly: 'Weekly',
  monthly: 'Monthly',
} as const satisfies Record<Resolution, string>;

interface ToolbarProps {
  readonly account: string;
  readonly isAdmin: boolean;
  readonly view: View;
  readonly window: Window;
  readonly now: EpochMs;
  /** The reason why the user cannot choose workspaces, or undefined if the user can. */
  readonly workspaceReason: string | undefined;
  readonly isFiltering: boolean;
  readonly onFilter: (isFiltering: boolean) => void;
}

export function Toolbar(props: ToolbarProps) {
  const { account, isAdmin, view, window, now, workspaceReason, isFiltering, onFilter } = props;
  const count = Object.keys(view.filters).length;
  return (
    <fieldset className="toolbar">
      <legend className="sr-only">View</legend>
      <PeriodPicker {...{ view, window, now }} />
      {account !== ALL_ACCOUNTS && <SavedViews {...{ account, isAdmin, view }} />}
      <GroupPickers {...{ view, workspaceReason }} />
      <button
        type="button"
        className={count > 0 ? 'control active' : 'control'}
        aria-expanded={isFiltering}
        onClick={() => onFilter(!isFiltering)}
      >
        <ControlText label="Filters" shown={count === 0 ? 'None' : `${count} active`} />
      </button>
      <Options {...{ view, window }} />
    </fieldset>
  );
}

function PeriodPicker({ view, window, now }: Pick<ToolbarProps, 'view' | 'window' | 'now'>) {
  const { period } = view;
  return (
    <Popover label="Period" shown={periodText(period)}>
      {(close) => {
        const choose = (next: PeriodChoice) => {
          navigate(withGroups(view, { period: next }));
          close();
        };
        const month = monthOf(window);
        return (
          <div className="period">
            <Menu
              choices={PRESETS.map(({ id: value, label, window: of }) => {
                return { value, label, hint: windowText(of(now)) };
              })}
              chosen={'preset' in period ? period.preset : undefined}
              onChoose={(preset) => choose({ preset })}
            />
            <div className="period-own">
              <Select
                label="Month"
                value={month === undefined ? '' : String(month)}
                choices={monthChoices(now, month)}
                onChange={(from) => choose({ from: Number(from), to: plusMonths(Number(from), 1) })}
              />
              <CustomRange window={window} onChoose={choose} />
            </div>
          </div>
        );
      }}
    </Popover>
  );
}

interface CustomRangeProps {
  readonly window: Window;
  readonly onChoose: (period: PeriodChoice) => void;
}

function CustomRange({ window, onChoose }: CustomRangeProps) {
  const [from, setFrom] = useState(dateText(window.startTime));
  const [to, setTo] = useState(dateText(window.endTime - 1));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onChoose({ from: Date.parse(from), to: Date.parse(to) + MS_PER_DAY });
  };
  return (
    <form className="form" onSubmit={submit}>
      <p className="form-title">Custom range</p>
      <Field label="Start date" type="date" required min="1970-01-01" max={to} value={from} onChange={setFrom} />
      <Field label="End date" type="date" required min={from} max="2099-12-31" value={to} onChange={setTo} />
      <PrimaryButton type="submit">Apply</PrimaryButton>
      <p className="hint">Both dates are included. Days begin at midnight UTC.</p>
    </form>
  );
}

type Grouping = MetricsDimension | 'none';

/** One label for each level of the grouping. */
const LEVELS = ['Group by', 'Then by', 'And by'] as const;

function GroupPickers({ view, workspaceReason }: Pick<ToolbarProps, 'view' | 'workspaceReason'>) {
  const { groupBy } = view;
  /** Replaces the dimension of a level. `none` at the first level removes all levels, so that the view has no groups. */
  const group = (level: number, chosen: Grouping) => {
    const levels = [...groupBy.slice(0, level), chosen, ...groupBy.slice(level + 1)];
    const isTotal = level === 0 && chosen === 'none';
    navigate(withGroups(view, { groupBy: isTotal ? [] : [...new Set(levels)].filter((each) => each !== 'none') }));
  };
  const dimensionsOffered = view.account === ALL_ACCOUNTS ? METRICS_DIMENSIONS : GROUP_BY_DIMENSIONS;
  const dimensions = dimensionsOffered.map((value): Choice<Grouping> => {
    return {
      value,
      label: DIMENSION_LABEL[value],
      disabledReason: value === 'workspace' ? workspaceReason : undefined,
    };
  });
  const none = { value: 'none', label: 'None' } as const;
  return LEVELS.slice(0, groupBy.length + 1).map((label, level) => {
    const before = groupBy.slice(0, level);
    const others = dimensions.filter(({ value }) => before.every((each) => each !== value));
    return (
      <Select
        key={label}
        label={label}
        labelPosition="inside"
        active={level > 0 && level < groupBy.length}
        value={groupBy[level] ?? 'none'}
        choices={level === 0 ? [...others, { ...none, hint: 'total only' }] : [none, ...others]}
        onChange={(chosen) => group(level, chosen)}
      />
    );
  });
}

function Options({ view, window }: Pick<ToolbarProps, 'view' | 'window'>) {
  const changed = [view.compare, view.isCumulative, view.isExact, view.isLive, view.resolution];
  const count = changed.filter(Boolean).length + (measureOf(view) === 'usage' ? 1 : 0);
  const usage = usageScope(view);
  return (
    <Popover label="Options" shown={count === 0 ? 'Default' : `${count} changed`} active={count > 0}>
      {() => (
        <div className="options">
          <Select
            label="Compare with"
            value={view.compare ?? 'nothing'}
            onChange={(chosen) => navigate({ ...view, compare: chosen === 'nothing' ? undefined : chosen })}
            choices={[
              { value: 'nothing', label: 'Nothing' },
              { value: 'period', label: 'Previous period' },
              { value: 'months', label: 'Same dates of previous months' },
            ]}
            hint={
              view.compare === 'months'
                ? 'Compares the same calendar dates, so weekdays may differ.'
                : 'Periods of months and monthly bars move back by months. Others move back by whole weeks, so that weekends line up.'
            }
          />
          <ResolutionOption {...{ view, window }} />
          <Select
            label="Measure"
            value={usage.unit === undefined ? 'cost' : view.measure}
            onChange={(measure) => navigate({ ...view, measure })}
            choices={[
              { value: 'cost', label: 'Cost' },
              { value: 'usage', label: 'Usage', disabledReason: usage.unit ? undefined : usage.reason },
            ]}
            hint={usage.unit === undefined ? usage.reason : ''}
          />
          <Switch
            label="Cumulative"
            isOn={view.isCumulative}
            onChange={(isCumulative) => navigate({ ...view, isCumulative })}
          />
          <Switch label="Full precision" isOn={view.isExact} onChange={(isExact) => navigate({ ...view, isExact })} />
          <Switch
            label="Auto-refresh every minute"
            isOn={view.isLive}
            onChange={(isLive) => navigate({ ...view, isLive })}
          />
        </div>
      )}
    </Popover>
  );
}

function ResolutionOption({ view, window }: Pick<ToolbarProps, 'view' | 'window'>) {
  const automatic = RESOLUTION_LABEL[resolutionOf({ ...view, resolution: undefined }, window)].toLowerCase();
  const choices = resolutionChoices(window).map(({ resolution, disabledReason }) => {
    return { value: resolution, label: RESOLUTION_LABEL[resolution], disabledReason };
  });
  const reasons = choices.map(({ label, disabledReason }) => disabledReason && `${label}: ${disabledReason}`);
  return (
    <Select<Resolution | 'automatic'>
      label="Resolution"
      value={view.resolution === undefined ? 'automatic' : resolutionOf(view, window)}
      choices={[{ value: 'automatic', label: `Automatic (${automatic})` }, ...choices]}
      onChange={(chosen) => navigate({ ...view, resolution: chosen === 'automatic' ? undefined : chosen })}
      hint={reasons.filter(Boolean).join(' ')}
    />
  );
}

/** Lists the active filters, each with a button that removes the filter. */
export function FilterChips({ view }: { readonly view: View }) {
  if (!hasFilters(view.filters)) return null;
  return (
    <ul className="chips" aria-label="Active filters">
      {GROUP_BY_DIMENSIONS.map((dimension) => {
        const field = ENTRY_FIELD[dimension];
        const filter = view.filters[field];
        if (!filter) return null;
        const text = `${FIELD_LABEL[field]}: ${filterText(field, filter)}`;
        return (
          <li key={field} className="chip">
            <span title={text}>{text}</span>
            <button
              type="button"
              aria-label={`Remove ${text}`}
              onClick={() => navigate(withFilter(view, field, undefined))}
            >
              ×
            </button>
          </li>
        );
      })}
      <li>
        <TextButton onClick={() => navigate(withGroups(view, { filters: {} }))}>Clear filters</TextButton>
      </li>
    </ul>
  );
}
