/** The body of a webhook: what was found, with amounts in all their digits. Source: Standard Webhooks, "Payload structure". */
import { type EpochMs, formatTimestamp, type WebhookType, type Window } from '@meterline/catalog';
import type { Alert } from './alert.js';
import type { Fired } from './alerts.js';

/** @param fired left out of a test */
export function webhookPayload(alert: Alert, type: WebhookType, period: Window, at: EpochMs, fired?: Fired): string {
  const { id: alertId, account: accountId, name, measure, amount } = alert;
  const { startTime, endTime } = period;
  const members = [
    `"alertId":${JSON.stringify(alertId)}`,
    `"accountId":${JSON.stringify(accountId)}`,
    `"name":${JSON.stringify(name)}`,
    `"period":{"startTime":"${formatTimestamp(startTime)}","endTime":"${formatTimestamp(endTime)}"}`,
    `"measure":"${measure}"`,
    // A decimal in its shortest form is a JSON number.
    `"amount":${amount}`,
    ...(fired ? [`"threshold":${fired.threshold}`, `"value":${fired.value}`] : []),
  ];
  return `{"type":"${type}","timestamp":"${formatTimestamp(at)}","data":{${members.join(',')}}}`;
}
