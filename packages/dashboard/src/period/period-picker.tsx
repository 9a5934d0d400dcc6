import { bucketStart, type EpochMs, MS_PER_DAY, plusMonths, type Window } from '@meterline/catalog';
import { type FormEvent, useState } from 'react';
import { Field, Popover, Select } from '../controls/controls.js';
import {
  dayText,
  monthOf,
  monthText,
  type PeriodChoice,
  PRESETS,
  parseDay,
  periodText,
  presetWindow,
  windowText,
} from './period.js';

interface PeriodPickerProps {
  readonly period: PeriodChoice;
  readonly window: Window;
  readonly now: EpochMs;
  readonly onChoose: (period: PeriodChoice) => void;
}

export function PeriodPicker({ period, window, now, onChoose }: PeriodPickerProps) {
  return (
    <Popover label="Period" shown={periodText(period)}>
      {(close) => {
        const choose = (next: PeriodChoice) => {
          onChoose(next);
          close();
        };
        const month = monthOf(window);
        return (
          <div className="period">
            <ul className="menu">
              {PRESETS.map(({ id, label }) => (
                <li key={id}>
                  <button
                    type="button"
                    aria-pressed={'preset' in period && period.preset === id}
                    onClick={() => choose({ preset: id })}
                  >
                    <span>{label}</span>
                    <span className="choice-hint">{windowText(presetWindow(id, now))}</span>
                  </button>
                </li>
              ))}
            </ul>
            <div className="period-own">
              <Select
                label="A month"
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

const MONTHS_OFFERED = 24;

/** The last two years, and the month that is shown. */
export function monthChoices(now: EpochMs, shown: EpochMs | undefined) {
  const recent = Array.from({ length: MONTHS_OFFERED }, (_, back) => plusMonths(bucketStart(now, 'monthly'), -back));
  const months = shown === undefined || recent.includes(shown) ? recent : [...recent, shown];
  return months.map((month) => ({ value: String(month), label: monthText(month) }));
}

function CustomRange({ window, onChoose }: Pick<PeriodPickerProps, 'window' | 'onChoose'>) {
  const [from, setFrom] = useState(dayText(window.startTime));
  const [to, setTo] = useState(dayText(window.endTime - 1));
  const [problem, setProblem] = useState<string>();

  const submit = (event: FormEvent) => {
    event.preventDefault();
    const [start, last] = [parseDay(from), parseDay(to)];
    if (start === undefined || last === undefined) return setProblem('Write days as 1 Nov 2026 or 2026-11-01.');
    if (last < start) return setProblem('The last day is before the first.');
    if (start < 0 || last >= Date.UTC(2100, 0)) return setProblem('Choose days between 1970 and 2099.');
    onChoose({ from: start, to: last + MS_PER_DAY });
  };
  return (
    <form className="form" onSubmit={submit} noValidate>
      <p className="form-title">Custom range</p>
      <Field label="First day" value={from} onChange={setFrom} />
      <Field label="Last day, inclusive" value={to} onChange={setTo} />
      {problem && (
        <p className="fault" role="alert">
          {problem}
        </p>
      )}
      <button type="submit" className="primary">
        Apply
      </button>
      <p className="hint">Days begin and end at midnight UTC.</p>
    </form>
  );
}
