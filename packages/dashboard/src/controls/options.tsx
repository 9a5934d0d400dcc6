/** What people change seldom, behind one button. */
import {
  type DecimalText,
  GROUP_BY_DIMENSIONS,
  type GroupByDimension,
  type Resolution,
  type Window,
} from '@meterline/catalog';
import { type FormEvent, type ReactNode, useId, useState } from 'react';
import { DIMENSION_LABEL } from '../breakdown/texts.js';
import { readBudget, setBudget, useBudget } from '../forecast/budget.js';
import { resolutionChoices, resolutionOf, usageScope } from '../metrics/question.js';
import { navigate } from '../view/address.js';
import { type View, withGroups } from '../view/view.js';
import { Popover } from './popover.js';

const RESOLUTION_LABEL = {
  hourly: 'Hourly',
  daily: 'Daily',
  weekly: 'Weekly',
  monthly: 'Monthly',
} as const satisfies Record<Resolution, string>;

interface OptionsProps {
  readonly account: string;
  readonly view: View;
  readonly window: Window;
  readonly workspaceReason: string | undefined;
}

export function Options({ account, view, window, workspaceReason }: OptionsProps) {
  const changed = [view.compare, view.isCumulative, view.isExact, view.isLive, view.resolution, view.groupBy[1]];
  const count = changed.filter(Boolean).length + (view.measure === 'usage' ? 1 : 0);
  return (
    <Popover label="Options" shown={count === 0 ? 'Default' : `${count} changed`} active={count > 0}>
      {() => (
        <div className="options">
          <ComparisonOption view={view} />
          <SecondGroupOption view={view} workspaceReason={workspaceReason} />
          <ResolutionOption view={view} window={window} />
          <MeasureOption view={view} />
          <Switch
            label="Cumulative"
            isOn={view.isCumulative}
            onChange={(isCumulative) => navigate({ ...view, isCumulative })}
          />
          <Switch label="Every digit" isOn={view.isExact} onChange={(isExact) => navigate({ ...view, isExact })} />
          <Switch
            label="Refresh every minute"
            isOn={view.isLive}
            onChange={(isLive) => navigate({ ...view, isLive })}
          />
          <BudgetOption account={account} />
        </div>
      )}
    </Popover>
  );
}

function ComparisonOption({ view }: Pick<OptionsProps, 'view'>) {
  return (
    <Select
      label="Compare with"
      isFirst
      value={view.compare ?? ''}
      onChange={(text) => navigate({ ...view, compare: text === 'period' || text === 'months' ? text : undefined })}
      hint={
        view.compare === 'months'
          ? 'Day by date: weekdays may differ.'
          : 'Whole weeks earlier, so that weekends face weekends; months where the bars are months.'
      }
    >
      <option value="">Nothing</option>
      <option value="period">The period before</option>
      <option value="months">Months before, by date</option>
    </Select>
  );
}

function SecondGroupOption({ view, workspaceReason }: Pick<OptionsProps, 'view' | 'workspaceReason'>) {
  const [first, second] = view.groupBy;
  if (!first) return null;
  const others = GROUP_BY_DIMENSIONS.filter((each) => each !== first);
  const choose = (chosen: GroupByDimension | undefined) =>
    navigate(withGroups(view, { groupBy: chosen ? [first, chosen] : [first] }));
  return (
    <Select
      label="Group also by"
      value={second ?? ''}
      onChange={(text) => choose(others.find((each) => each === text))}
    >
      <option value="">Nothing else</option>
      {others.map((each) => (
        <option key={each} value={each} disabled={each === 'workspace' && workspaceReason !== undefined}>
          {DIMENSION_LABEL[each]}
        </option>
      ))}
    </Select>
  );
}

function ResolutionOption({ view, window }: Pick<OptionsProps, 'view' | 'window'>) {
  const automatic = resolutionOf({ ...view, resolution: undefined }, window);
  const choices = resolutionChoices(window);
  const tooLong = choices.filter(({ disabledReason }) => disabledReason);
  return (
    <Select
      label="Bars"
      value={view.resolution === undefined ? '' : resolutionOf(view, window)}
      onChange={(text) =>
        navigate({ ...view, resolution: choices.find(({ resolution }) => resolution === text)?.resolution })
      }
      hint={tooLong
        .map(({ resolution, disabledReason }) => `${RESOLUTION_LABEL[resolution]}: ${disabledReason}`)
        .join(' ')}
    >
      <option value="">Automatic ({RESOLUTION_LABEL[automatic].toLowerCase()})</option>
      {choices.map(({ resolution, disabledReason }) => (
        <option key={resolution} value={resolution} disabled={disabledReason !== undefined}>
          {RESOLUTION_LABEL[resolution]}
        </option>
      ))}
    </Select>
  );
}

function MeasureOption({ view }: Pick<OptionsProps, 'view'>) {
  const usage = usageScope(view);
  return (
    <Select
      label="Measure"
      value={usage.unit === undefined ? 'cost' : view.measure}
      onChange={(text) => navigate({ ...view, measure: text === 'usage' ? 'usage' : 'cost' })}
      hint={usage.unit === undefined ? usage.reason : ''}
    >
      <option value="cost">Cost</option>
      <option value="usage" disabled={usage.unit === undefined}>
        Usage
      </option>
    </Select>
  );
}

function BudgetOption({ account }: { readonly account: string }) {
  const budget = useBudget(account);
  const [text, setText] = useState<string>(budget ?? '');
  const [fault, setFault] = useState(false);
  const [inputId, hintId] = [useId(), useId()];
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const wanted: DecimalText | undefined = readBudget(text);
    setFault(wanted === undefined && text.trim() !== '');
    if (wanted !== undefined || text.trim() === '') setBudget(account, wanted);
  };
  return (
    <form className="option" onSubmit={submit} noValidate>
      <label htmlFor={inputId}>Budget, USD a month</label>
      <span className="option-row">
        <input
          id={inputId}
          inputMode="decimal"
          autoComplete="off"
          placeholder="none"
          value={text}
          aria-describedby={hintId}
          aria-invalid={fault}
          onChange={(event) => setText(event.target.value)}
        />
        <button type="submit" className="control">
          Set
        </button>
      </span>
      <span className={fault ? 'fault' : 'hint'} id={hintId} role={fault ? 'alert' : undefined}>
        {fault ? 'Write an amount such as 1200.50, or nothing.' : 'Of the whole account; kept in this browser.'}
      </span>
    </form>
  );
}

interface SelectProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly hint?: string;
  /** It takes the focus when the options open. */
  readonly isFirst?: boolean;
  readonly children: ReactNode;
}

function Select({ label, value, onChange, hint = '', isFirst = false, children }: SelectProps) {
  const [selectId, hintId] = [useId(), useId()];
  return (
    <div className="option">
      <label htmlFor={selectId}>{label}</label>
      <select
        id={selectId}
        data-autofocus={isFirst || undefined}
        value={value}
        aria-describedby={hint === '' ? undefined : hintId}
        onChange={(event) => onChange(event.target.value)}
      >
        {children}
      </select>
      {hint !== '' && (
        <span className="hint" id={hintId}>
          {hint}
        </span>
      )}
    </div>
  );
}

interface SwitchProps {
  readonly label: string;
  readonly isOn: boolean;
  readonly onChange: (isOn: boolean) => void;
}

function Switch({ label, isOn, onChange }: SwitchProps) {
  return (
    <label className="switch">
      <input type="checkbox" checked={isOn} onChange={(event) => onChange(event.target.checked)} />
      <span>{label}</span>
    </label>
  );
}
