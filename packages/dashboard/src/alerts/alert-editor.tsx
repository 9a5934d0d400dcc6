/** The form for a new alert, or for a change of one. What it holds is checked by the API. */
import { alertUnit, DEFAULT_THRESHOLDS, UNIT_NAME } from '@meterline/catalog/plain';
import { type AlertResponse, type AlertWithSecretResponse, MeterlineError, type NewAlertBody } from '@meterline/client';
import { type FormEvent, useEffect, useState } from 'react';
import { ErrorText, Field, focusOn, Primary, Quiet, Segments } from '../controls/controls.js';
import { amountIn, subjectText, useAlertAction } from './alerts.js';

interface AlertEditorProps {
  readonly account: string;
  /** Undefined: a new one. */
  readonly alert?: AlertResponse;
  /** What a new one is about. */
  readonly filters: NonNullable<NewAlertBody['filters']>;
  /** Whether something was typed that is not saved. */
  readonly onChanged: (isChanged: boolean) => void;
  readonly onCancel: () => void;
  readonly onSaved: () => void;
  /** Called even when the form is gone by then: a new alert's secret is never shown again. */
  readonly onCreated: (created: AlertWithSecretResponse) => void;
}

/** What the API does not take, in the words of the form; of an address (undefined) the API says why. */
const WANTED: Readonly<Record<string, string | undefined>> = {
  name: 'A name of at most 256 characters.',
  amount: 'An amount above 0, such as 1,000.50 or 0.50, with at most 15 digits before the point and 12 after it.',
  thresholds: 'One to ten whole numbers from 1 to 1000, such as 50, 80, 100.',
  url: undefined,
};
const PERIODS = { Month: 'month', Day: 'day' } as const;

export function AlertEditor({ account, alert, filters, onChanged, onCancel, onSaved, onCreated }: AlertEditorProps) {
  const [initial] = useState({
    name: alert?.name ?? '',
    period: alert?.period ?? ('month' as const),
    amount: alert?.amount ?? '',
    thresholds: (alert?.thresholds ?? DEFAULT_THRESHOLDS).join(', '),
    url: alert?.url ?? '',
  });
  const [draft, setDraft] = useState(initial);
  const isChanged = JSON.stringify(draft) !== JSON.stringify(initial);
  useEffect(() => {
    onChanged(isChanged);
    return () => onChanged(false);
  }, [isChanged, onChanged]);
  const { period } = draft;
  const save = useAlertAction(account, async (client) => {
    if (alert) await client.alerts.update(account, alert.id, fields);
    else onCreated(await client.alerts.create(account, { ...fields, measure: 'cost', filters }));
  });
  /** By the members of the draft. */
  const problems = new Map<string, string | undefined>();
  for (const { parameter, message } of save.error instanceof MeterlineError ? save.error.details : []) {
    const [member = ''] = parameter?.split('.') ?? [];
    problems.set(member, WANTED[member] ?? message);
  }
  /** A line of text for a member of the draft. */
  const field = (member: Exclude<keyof typeof draft, 'period'>) => ({
    value: draft[member],
    onChange: (text: string) => setDraft({ ...draft, [member]: text }),
    autoComplete: 'off',
    problem: problems.get(member),
  });
  const fields = {
    name: draft.name.trim(),
    period,
    amount: amountIn(draft.amount),
    thresholds: percentsIn(draft.thresholds),
    url: draft.url.trim(),
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate(undefined, { onSuccess: onSaved });
  };
  const unit = alert && alertUnit(alert);
  return (
    <form className="alert form" aria-label={alert ? `Change ${alert.name}` : 'New alert'} onSubmit={submit} noValidate>
      <p className="form-title">{alert ? `Change ${alert.name}` : 'New alert'}</p>
      <p className="hint">{subjectText(alert?.measure ?? 'cost', alert?.filters ?? filters)}</p>
      <Field label="Name" ref={focusOn} {...field('name')} placeholder="Monthly spend" />
      <Segments
        legend="Period"
        choices={Object.keys(PERIODS)}
        chosen={period === 'day' ? 'Day' : 'Month'}
        onChoose={(chosen) => setDraft({ ...draft, period: chosen === 'Day' ? PERIODS.Day : PERIODS.Month })}
      />
      <Field
        label={`Amount, ${unit ? UNIT_NAME[unit] : 'USD'} a ${period}`}
        {...field('amount')}
        inputMode="decimal"
        placeholder="1000"
      />
      <Field label="Fires at, percent of it" {...field('thresholds')} />
      <Field label="Sent to" {...field('url')} type="url" placeholder="https://example.com/webhooks" />
      <ErrorText>{![...problems.keys()].some((member) => member in WANTED) && save.error?.message}</ErrorText>
      <div className="alert-actions">
        <Primary type="submit" disabled={save.isPending}>
          {alert ? 'Save' : 'Create the alert'}
        </Primary>
        <Quiet disabled={save.isPending} onClick={onCancel}>
          {isChanged ? 'Discard' : 'Cancel'}
        </Quiet>
      </div>
    </form>
  );
}

/** What stands in `50%, 80`, ascending; the API refuses what is no number. */
function percentsIn(text: string): number[] {
  const parts = text.split(/[\s,;%]+/).filter((part) => part !== '');
  return [...new Set(parts.map(Number))].sort((a, b) => a - b);
}
