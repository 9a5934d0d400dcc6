/** Checks the rules of alerts that the body's schema cannot check: rules across fields, and rules that depend on the operator's settings. */
import type { ParameterProblem } from '@meterline/api';
import { type AlertChange, MAX_FILTER_VALUES, type NewAlert, newAlertSchema } from '@meterline/catalog';
import { type Alert, type AllowedHosts, isSigned, targetProblem } from '@meterline/service/alerts';
import type { Requires } from '../http/member.js';

type Definition = Pick<Alert, 'measure' | 'period' | 'forecast' | 'filters' | 'url' | 'to'> & {
  readonly thresholds: readonly unknown[];
};
type Target = Pick<NewAlert, 'format' | 'url' | 'to'>;
type Operator = Requires<'sendsMail'>;

/** Returns the schema of a URL that alerts may be sent to. The body's schema includes it, so that all errors are reported together. */
export function targetUrl(allowed: AllowedHosts) {
  return newAlertSchema.shape.url.superRefine((url, context) => {
    const message = url === undefined ? undefined : targetProblem(url, allowed);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  });
}

export function definitionProblems(alert: Definition): ParameterProblem[] {
  const { measure, period, thresholds, forecast, filters, url, to } = alert;
  const count = Object.values(filters).reduce((sum, list) => sum + (list?.length ?? 0), 0);
  const rules: readonly (readonly [isBroken: boolean, parameter: string, message: string])[] = [
    [count > MAX_FILTER_VALUES, 'filters', `filters must have at most ${MAX_FILTER_VALUES} values in total.`],
    [
      measure === 'usage' && filters.billingDimension?.length !== 1,
      'filters.billingDimension',
      'filters.billingDimension must have exactly one value if measure is usage, because each dimension has its own unit.',
    ],
    [thresholds.length + forecast.length === 0, 'thresholds', 'thresholds must not be empty without forecast.'],
    [period === 'day' && forecast.length > 0, 'forecast', 'forecast is only for the period month.'],
    [url === undefined && to === undefined, 'url', 'url is missing: an alert needs url, or to for e-mail.'],
    [
      url !== undefined && to !== undefined,
      'to',
      'to is for alerts without url: an alert has one of them and keeps it. Create another alert for the other one.',
    ],
  ];
  return rules.flatMap(([isBroken, parameter, message]) => (isBroken ? [{ parameter, message }] : []));
}

export function targetProblems({ format = 'standard', url, to }: Target, { sendsMail }: Operator): ParameterProblem[] {
  const reject = (parameter: string, message: string) => [{ parameter, message }];
  if (to && !sendsMail) {
    return reject('to', 'to needs a mail server, which the operator has not set (ALERT_SMTP_URL, ALERT_SMTP_FROM).');
  }
  if (to && format !== 'standard') return reject('format', 'format is only for url.');
  if (url === undefined) return [];
  // Responses contain only the origin of a Slack or Teams URL. A client that sends this origin back must not replace the URL with it.
  if (format === 'standard' || new URL(url).pathname !== '/') return [];
  return reject('url', 'url must be the whole URL of the incoming webhook, not only its origin.');
}

/** @param alert the alert after the change */
export function changeProblems(change: AlertChange, alert: Alert, operator: Operator): ParameterProblem[] {
  const { url, to, rotateSecret } = change;
  if (rotateSecret && !isSigned(alert)) {
    return [
      { parameter: 'rotateSecret', message: 'rotateSecret is only for signed webhooks: this alert has no secret.' },
    ];
  }
  return targetProblems({ ...(url !== undefined && { format: alert.format }), url, to }, operator);
}
