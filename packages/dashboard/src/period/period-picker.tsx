import { bucketStart, type EpochMs, MS_PER_DAY, parseTimestamp, plusMonths, type Window } from '@meterline/catalog';
import { type FormEvent, useId, useState } from 'react';
import { Popover } from '../controls/popover.js';
import { monthOf, type PeriodChoice, PRESETS, presetWindow } from './period.js';
import { dateInputText, monthText, periodText, windowText } from './period-text.js';

interface PeriodPickerProps {
  readonly period: PeriodChoice;
  readonly window: Window;
  readonly now: EpochMs;
  readonly onChoose: (period: PeriodChoice) => void;
}

export function PeriodPicker({ period, window, now, onChoose }: PeriodPickerProps) {
  const chosenPreset = 'preset' in period ? period.preset : undefined;
  return (
    <Popover label="Period" shown={periodText(period)}>
      {(close) => {
        const choose = (next: PeriodChoice) => {
          onChoose(next);
          close();
        };
        return (
          <div className="period">
            <ul className="presets">
              {PRESETS.map(({ id, label }) => (
                <li key={id}>
                  <button
                    type="button"
                    data-autofocus={id === (chosenPreset ?? PRESETS[0].id) || undefined}
                    aria-pressed={id === chosenPreset}
                    onClick={() => choose({ preset: id })}
                  >
                    <span>{label}</span>
                    <span className="choice-hint">{windowText(presetWindow(id, now))}</span>
                  </button>
                </li>
              ))}
            </ul>
            <div className="period-own">
              <AnyMonth window={window} now={now} onChoose={choose} />
              <CustomRange window={window} onChoose={choose} />
            </div>
          </div>
        );
      }}
    </Popover>
  );
}

interface AnyMonthProps {
  readonly window: Window;
  readonly now: EpochMs;
  readonly onChoose: (period: PeriodChoice) => void;
}

const MONTHS_OFFERED = 24;

function AnyMonth({ window, now, onChoose }: AnyMonthProps) {
  const selectId = useId();
  const chosen = monthOf(window);
  const recent = Array.from({ length: MONTHS_OFFERED }, (_, back) => plusMonths(bucketStart(now, 'monthly'), -back));
  const months = chosen === undefined || recent.includes(chosen) ? recent : [...recent, chosen];
  return (
    <div className="any-month">
      <label htmlFor={selectId}>A month</label>
      <select
        id={selectId}
        value={chosen ?? ''}
        onChange={({ target }) => onChoose({ from: Number(target.value), to: plusMonths(Number(target.value), 1) })}
      >
        {chosen === undefined && <option value="">Choose…</option>}
        {months.map((month) => (
          <option key={month} value={month}>
            {monthText(month)}
          </option>
        ))}
      </select>
    </div>
  );
}

interface CustomRangeProps {
  readonly window: Window;
  readonly onChoose: (period: PeriodChoice) => void;
}

function CustomRange({ window, onChoose }: CustomRangeProps) {
  const [from, setFrom] = useState(dateInputText(window.startTime));
  const [to, setTo] = useState(dateInputText(window.endTime - 1));
  const [fault, setFault] = useState<string>();
  const [fromId, toId] = [useId(), useId()];

  const submit = (event: FormEvent) => {
    event.preventDefault();
    const [start, last] = [parseTimestamp(`${from}T00:00:00Z`), parseTimestamp(`${to}T00:00:00Z`)];
    if (start === undefined || last === undefined) return setFault('Enter both days.');
    if (last < start) return setFault('The last day is before the first.');
    if (start < 0 || last >= Date.UTC(2100, 0)) return setFault('Choose days between 1970 and 2099.');
    onChoose({ from: start, to: last + MS_PER_DAY });
  };
  return (
    <form className="custom-range" onSubmit={submit} noValidate>
      <p className="custom-range-title">Custom range</p>
      <label htmlFor={fromId}>First day</label>
      <input id={fromId} type="date" value={from} onChange={(event) => setFrom(event.target.value)} />
      <label htmlFor={toId}>Last day, inclusive</label>
      <input id={toId} type="date" value={to} onChange={(event) => setTo(event.target.value)} />
      {fault && (
        <p className="fault" role="alert">
          {fault}
        </p>
      )}
      <button type="submit" className="primary">
        Apply
      </button>
      <p className="hint">Days begin and end at midnight UTC.</p>
    </form>
  );
}
