/** What there is to choose for a FOCUS file. Loaded when the menu opens. */
import { bucketStart, type EpochMs, isName, plusMonths } from '@meterline/catalog';
import { DEFAULT_PROVIDER, type FocusQuestion } from '@meterline/client/focus';
import { type FormEvent, useId, useState } from 'react';
import { monthText } from '../period/period-text.js';

const MONTHS_OFFERED = 24;
/** The browser keeps the provider's name. */
const PROVIDER = 'meterline.provider';

export interface FocusFormProps {
  readonly account: string;
  /** An instant of the month that is suggested. */
  readonly during: EpochMs;
  readonly now: EpochMs;
  readonly onSubmit: (question: FocusQuestion) => void;
}

export default function FocusForm({ account, during, now, onSubmit }: FocusFormProps) {
  const suggested = bucketStart(during, 'monthly');
  const recent = Array.from({ length: MONTHS_OFFERED }, (_, back) => plusMonths(bucketStart(now, 'monthly'), -back));
  const [month, setMonth] = useState(suggested);
  const [resolution, setResolution] = useState<'daily' | 'hourly'>('daily');
  const [provider, setProvider] = useState(localStorage.getItem(PROVIDER) ?? '');
  const [monthId, rowsId, providerId] = [useId(), useId(), useId()];
  const name = provider.trim();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (name === '') localStorage.removeItem(PROVIDER);
    else localStorage.setItem(PROVIDER, name);
    onSubmit({ account, month, resolution, provider: isName(name) ? name : undefined });
  };
  return (
    <form className="focus-form" onSubmit={submit}>
      <p className="custom-range-title">A month as FOCUS 1.2</p>
      <p className="hint">The common format of cost data: all usage of the account, whatever is filtered here.</p>
      <label htmlFor={monthId}>Month</label>
      <select id={monthId} value={month} onChange={({ target }) => setMonth(Number(target.value))}>
        {(recent.includes(suggested) ? recent : [suggested, ...recent]).map((each) => (
          <option key={each} value={each}>
            {monthText(each)}
          </option>
        ))}
      </select>
      <label htmlFor={rowsId}>A row for each resource and</label>
      <select
        id={rowsId}
        value={resolution}
        onChange={({ target }) => setResolution(target.value === 'hourly' ? 'hourly' : 'daily')}
      >
        <option value="daily">day</option>
        <option value="hourly">hour</option>
      </select>
      <label htmlFor={providerId}>Name of the provider</label>
      <input
        id={providerId}
        value={provider}
        maxLength={256}
        placeholder={DEFAULT_PROVIDER}
        onChange={({ target }) => setProvider(target.value)}
      />
      <button type="submit" className="primary">
        Export FOCUS
      </button>
    </form>
  );
}
