/** Renders the form that creates or edits an alert. The API validates the fields. */
import { alertUnit, DEFAULT_THRESHOLDS, unitName } from '@meterline/catalog/plain';
import { type AlertResponse, type AlertWithSecretResponse, MeterlineError, type NewAlertBody } from '@meterline/client';
import { type FormEvent, useEffect, useState } from 'react';
import { ErrorText, Field, focusOn, PrimaryButton, Segments, TextButton } from '../controls/controls.js';
import { Select } from '../controls/lists.js';
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

/** Error messages for fields that the API rejected. For an undefined message, the form shows the API's own message, which has the reason. */
const MESSAGES: Readonly<Record<string, string | undefined>> = {
  name: 'Enter a name of at most 256 characters.',
  amount: 'Enter an amount above 0, such as 1,000.50. Use at most 15 digits before the decimal point and 12 after.',
  thresholds: 'Enter one to ten whole numbers from 1 to 1000, such as 50, 80, 100.',
  forecast: 'Enter up to ten whole numbers from 1 to 1000, such as 100. Only monthly alerts have forecasts.',
  url: undefined,
  to: undefined,
};
/** The kinds of target. The kind of an existing alert cannot change. */
export const KINDS = [
  { value: 'standard', label: 'Signed webhook' },
  { value: 'slack', label: 'Slack' },
  { value: 'teams', label: 'Microsoft Teams' },
  { value: 'mail', label: 'E-mail' },
] as const;

export function kindOf({ to, format }: AlertResponse): (typeof KINDS)[number]['value'] {
  return to ? 'mail' : (format ?? 'standard');
}

const TARGET_LABEL = { url: 'Webhook URL', to: 'E-mail addresses' } as const;
const PERIODS = { Month: 'month', Day: 'day' } as const;

export function AlertEditor({ account, alert, filters, onChanged, onCancel, onSaved, onCreated }: AlertEditorProps) {
  const [initial] = useState({
    name: alert?.name ?? '',
    period: alert?.period ?? ('month' as const),
    amount: alert?.amount ?? '',
    thresholds: (alert?.thresholds ?? DEFAULT_THRESHOLDS).join(', '),
    forecast: alert?.forecast.join(', ') ?? '',
    kind: alert ? kindOf(alert) : ('standard' as const),
    // The API shows only the origin of the URLs of Slack and Teams. An empty field keeps the URL.
    url: alert?.format === 'standard' ? (alert.url ?? '') : '',
    to: alert?.to?.join(', ') ?? '',
  });
  const [draft, setDraft] = useState(initial);
  const isChanged = JSON.stringify(draft) !== JSON.stringify(initial);
  useEffect(() => {
    onChanged(isChanged);
    return () => onChanged(false);
  }, [isChanged, onChanged]);
  const { period, kind } = draft;
  const target = kind === 'mail' ? 'to' : 'url';
  const save = useAlertAction(account, async (client) => {
    if (alert) {
      await client.alerts.update(account, alert.id, fields);
      return;
    }
    const format = kind === 'mail' ? undefined : kind;
    const created = await client.alerts.create(account, { ...fields, format, measure: 'cost', filters });
    if (created.secret !== undefined) onCreated(created);
  });
  const problems = new Map<string, string | undefined>();
  for (const { parameter, message } of save.error instanceof MeterlineError ? save.error.details : []) {
    const [member = ''] = parameter?.split('.') ?? [];
    problems.set(member, MESSAGES[member] ?? message?.replace(/^(url|to)\b/, TARGET_LABEL[target]));
  }
  const field = (member: Exclude<keyof typeof draft, 'period' | 'kind'>) => ({
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
    forecast: percentsIn(draft.forecast),
    ...(kind === 'mail' && { to: draft.to.split(/[\s,;]+/).filter((part) => part !== '') }),
    ...(kind !== 'mail' && (draft.url !== '' || !alert) && { url: draft.url.trim() }),
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
        label={`Amount (${unit ? unitName(unit) : 'USD'} per ${period})`}
        {...field('amount')}
        inputMode="decimal"
        placeholder="1000"
      />
      <Field label="Thresholds (percent of the amount)" {...field('thresholds')} />
      {period === 'month' && (
        <Field label="Forecast (percent of the amount, optional)" {...field('forecast')} placeholder="100" />
      )}
      {!alert && (
        <Select label="Send" value={kind} choices={KINDS} onChange={(chosen) => setDraft({ ...draft, kind: chosen })} />
      )}
      {kind === 'mail' ? (
        <Field label={TARGET_LABEL.to} {...field('to')} placeholder="finance@example.com, ops@example.com" />
      ) : (
        <Field
          label={TARGET_LABEL.url}
          {...field('url')}
          type="url"
          placeholder={alert?.url ? `${alert.url}/… (unchanged)` : 'https://example.com/webhooks'}
        />
      )}
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
