/** Renders the form that creates or edits an alert. The API validates the fields. */
import { alertUnit, DEFAULT_THRESHOLDS, UNIT_NAME } from '@meterline/catalog/plain';
import { type AlertResponse, type AlertWithSecretResponse, MeterlineError, type NewAlertBody } from '@meterline/client';
import { type FormEvent, useEffect, useState } from 'react';
import { ErrorText, Field, focusOn, PrimaryButton, Segments, TextButton } from '../controls/controls.js';
import { amountIn, subjectText, useAlertAction } from './alerts.js';

interface AlertEditorProps {
  readonly account: string;
  readonly alert?: AlertResponse;
  readonly filters: NonNullable<NewAlertBody['filters']>;
  readonly onChanged: (isChanged: boolean) => void;
  readonly onCancel: () => void;
  readonly onSaved: () => void;
  /** Called even after the form has closed, because the API returns the secret of a new alert only once. */
  readonly onCreated: (created: AlertWithSecretResponse) => void;
}

/** Error messages for fields that the API rejected. For the URL, the API's own message has the reason. */
const MESSAGES: Readonly<Record<string, string | undefined>> = {
  name: 'Enter a name of at most 256 characters.',
  amount: 'Enter an amount above 0, such as 1,000.50. Use at most 15 digits before the decimal point and 12 after.',
  thresholds: 'Enter one to ten whole numbers from 1 to 1000, such as 50, 80, 100.',
  url: undefined,
};
const URL_LABEL = 'Webhook URL';
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
  const problems = new Map<string, string | undefined>();
  for (const { parameter, message } of save.error instanceof MeterlineError ? save.error.details : []) {
    const [member = ''] = parameter?.split('.') ?? [];
    problems.set(member, MESSAGES[member] ?? message?.replace(/^url\b/, URL_LABEL));
  }
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
    <form className="alert form" aria-label={alert ? `Edit ${alert.name}` : 'New alert'} onSubmit={submit} noValidate>
      <p className="form-title">{alert ? `Edit ${alert.name}` : 'New alert'}</p>
      <p className="hint">{subjectText(alert?.measure ?? 'cost', alert?.filters ?? filters)}</p>
      <Field label="Name" ref={focusOn} {...field('name')} placeholder="Monthly spend" />
      <Segments
        legend="Period"
        choices={Object.keys(PERIODS)}
        chosen={period === 'day' ? 'Day' : 'Month'}
        onChoose={(chosen) => setDraft({ ...draft, period: chosen === 'Day' ? PERIODS.Day : PERIODS.Month })}
      />
      <Field
        label={`Amount (${unit ? UNIT_NAME[unit] : 'USD'} per ${period})`}
        {...field('amount')}
        inputMode="decimal"
        placeholder="1000"
      />
      <Field label="Thresholds (percent of the amount)" {...field('thresholds')} />
      <Field label={URL_LABEL} {...field('url')} type="url" placeholder="https://example.com/webhooks" />
      <ErrorText>{![...problems.keys()].some((member) => member in MESSAGES) && save.error?.message}</ErrorText>
      <div className="alert-actions">
        <PrimaryButton type="submit" disabled={save.isPending}>
          {alert ? 'Save' : 'Create alert'}
        </PrimaryButton>
        <TextButton disabled={save.isPending} onClick={onCancel}>
          {isChanged ? 'Discard' : 'Cancel'}
        </TextButton>
      </div>
    </form>
  );
}

/** Parses a list such as `50%, 80` into ascending numbers. A part that is not a number becomes NaN, which the API rejects. */
function percentsIn(text: string): number[] {
  const parts = text.split(/[\s,;%]+/).filter((part) => part !== '');
  return [...new Set(parts.map(Number))].sort((a, b) => a - b);
}
