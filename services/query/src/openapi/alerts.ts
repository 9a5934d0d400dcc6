/** Describes the operations for alerts. Contract tests send the examples and compare the responses. */
import type { OperationSketch } from '@meterline/api';
import { ALERT_LIST_PARAMETERS, DEFAULT_THRESHOLDS, DELIVERY_LIST_PARAMETERS, MAX_ALERTS } from '@meterline/catalog';
import { API_ERRORS } from '../http/errors.js';

const ALERTS = '/v0/accounts/{accountId}/alerts';
const ALERT = `${ALERTS}/{alertId}`;
const DELIVERIES = `${ALERT}/deliveries`;

const createdAt = '2025-11-15T12:00:00.000Z';
const ID = 'alr_3bd5a0f1c2e49b687d05aa31';
const ACCOUNT = { accountId: 'acme' };
const PATH = { ...ACCOUNT, alertId: ID };
const RECENT = { 'Svc-Version': '2026-04-28' };
const url = 'https://example.com/hooks';
const DEFINITION = {
  name: 'Monthly spend',
  period: 'month',
  measure: 'cost',
  amount: '100',
  thresholds: DEFAULT_THRESHOLDS,
  forecast: [],
  filters: { workspace: ['production'] },
};
const SETTINGS = { ...DEFINITION, url };
const STATE = { createdAt, updatedAt: createdAt, fired: [], forecastFired: [] };
const SHOWN = { id: ID, ...DEFINITION, format: 'standard', url, ...STATE };
const SLACK = { ...DEFINITION, format: 'slack', url: 'https://hooks.slack.example/services/T0/B0/secret' };
const MAIL = { ...DEFINITION, forecast: [100], to: ['billing@example.com', 'ops@example.com'] };
const SECRET = `whsec_${'A'.repeat(43)}=`;
const DELIVERY_ID = 'dlv_0f1e2d3c4b5a69788796a5b4c3d2e1f0';
const TEST = {
  id: DELIVERY_ID,
  createdAt,
  state: 'pending',
  attempts: 0,
  payload: {
    type: 'alert.test',
    timestamp: '2025-11-15T12:00:00Z',
    data: {
      alertId: ID,
      ...ACCOUNT,
      name: SETTINGS.name,
      period: { startTime: '2025-11-01T00:00:00Z', endTime: '2025-12-01T00:00:00Z' },
      measure: 'cost',
      amount: 100,
    },
  },
};
const pageOf = (...data: readonly unknown[]) => ({
  data,
  meta: { hasMore: false, nextCursor: '', total: data.length },
});

const COMMON = { tag: 'Alerts', isExtension: true, errors: [...API_ERRORS, 'NotFound'] } as const;
const WRITERS = 'For admins of the account only.';

export const ALERT_OPERATIONS: readonly OperationSketch[] = [
  {
    ...COMMON,
    method: 'get',
    path: ALERTS,
    operationId: 'listAlerts',
    summary: 'List the alerts of an account',
    description:
      'Members do not see alerts that filter by workspace. Since version 2026-04-28, the response is an object with pages, and ' +
      'parameters are accepted. Earlier versions return an array of all alerts.',
    query: ALERT_LIST_PARAMETERS,
    success: { description: 'The alerts.', schemas: ['AlertPage', 'AlertArray'] },
    examples: {
      page: { summary: 'A page', parameters: { ...ACCOUNT, ...RECENT }, response: pageOf(SHOWN) },
    },
    errors: API_ERRORS,
  },
  {
    ...COMMON,
    method: 'post',
    path: ALERTS,
    operationId: 'createAlert',
    summary: 'Create an alert',
    description:
      'An alert posts a signed webhook (Standard Webhooks) within a minute of the event that crosses a threshold, once per threshold ' +
      'and period, even if later events correct the total. Thresholds that are already crossed fire at once. With `format`, it posts a ' +
      'message to Slack or Microsoft Teams instead; with `to`, it sends an e-mail to each address. `forecast` has thresholds that the ' +
      'forecast of the month reaches, judged once an hour from the third day of the month on. **Only this response contains the ' +
      `secret.** ${WRITERS} An account has at most ${MAX_ALERTS} alerts.`,
    body: ['NewAlert'],
    success: {
      status: '201',
      description: 'The alert was created.',
      schemas: ['AlertWithSecret'],
      headers: {
        Location: {
          description: 'URL of the alert, relative to the request.',
          required: true,
          schema: { type: 'string' },
        },
      },
    },
    examples: {
      ofProduction: {
        summary: 'Monthly spend of one workspace',
        parameters: ACCOUNT,
        body: SETTINGS,
        response: { ...SHOWN, secret: SECRET },
      },
      toSlack: {
        summary: 'A message to Slack',
        parameters: ACCOUNT,
        body: SLACK,
        response: { id: ID, ...SLACK, url: 'https://hooks.slack.example', ...STATE },
      },
      byMail: {
        summary: 'E-mails, also about the forecast',
        parameters: ACCOUNT,
        body: MAIL,
        response: { id: ID, ...MAIL, ...STATE },
      },
    },
    errors: [...API_ERRORS, 'Conflict'],
  },
  {
    ...COMMON,
    method: 'get',
    path: ALERT,
    operationId: 'getAlert',
    summary: 'Get an alert',
    description: 'Includes the thresholds that fired in the current period.',
    success: { description: 'The alert.', schemas: ['Alert'] },
    examples: { one: { summary: 'An alert that has not fired', parameters: PATH, response: SHOWN } },
  },
  {
    ...COMMON,
    method: 'patch',
    path: ALERT,
    operationId: 'changeAlert',
    summary: 'Change an alert',
    description:
      `Changes the fields in the body. ${WRITERS} If the period, measure, amount or filters change, thresholds that are already ` +
      'crossed fire again. With `rotateSecret`, the response has a new `secret`; webhooks are also signed with the last nine secrets ' +
      'for 24 hours. An alert keeps its kind of target: `url` is only for an alert with a URL, whose format stays, and `to` for an alert ' +
      'by e-mail.',
    body: ['AlertChange'],
    success: { description: 'The changed alert.', schemas: ['AlertWithSecret'] },
    examples: {
      thresholds: {
        summary: 'An additional threshold',
        parameters: PATH,
        body: { thresholds: [50, 80, 100, 120] },
        response: { ...SHOWN, thresholds: [50, 80, 100, 120], updatedAt: '2025-11-15T12:00:00.001Z' },
      },
    },
  },
  {
    ...COMMON,
    method: 'delete',
    path: ALERT,
    operationId: 'deleteAlert',
    summary: 'Delete an alert',
    description: `Deletes the alert and its deliveries. Pending webhooks are not sent. ${WRITERS}`,
    success: { status: '204', description: 'The alert is deleted. The response has no body.', schemas: [] },
    examples: { one: { summary: 'An alert', parameters: PATH } },
  },
  {
    ...COMMON,
    method: 'post',
    path: `${ALERT}/test`,
    operationId: 'testAlert',
    summary: 'Send a test',
    description:
      'Sends a webhook of the type `alert.test`, a message, or an e-mail to each address, in one attempt. The response is the first ' +
      `delivery. ${WRITERS} The list of deliveries shows the outcomes.`,
    success: { status: '202', description: 'The test is queued.', schemas: ['Delivery'] },
    examples: { one: { summary: 'A test', parameters: PATH, response: TEST } },
  },
  {
    ...COMMON,
    method: 'get',
    path: DELIVERIES,
    operationId: 'listDeliveries',
    summary: 'List the deliveries of an alert',
    description:
      'The webhooks, messages and e-mails of the last 30 days with their outcome. `payload` is the body of a webhook; messages and e-mails ' +
      'state the same facts. There are at most the newest 1,000 of an account, or 10,000 if the others are pending. Pages and parameters are the same ' +
      'as for the list of alerts.',
    query: DELIVERY_LIST_PARAMETERS,
    success: { description: 'The deliveries.', schemas: ['DeliveryPage', 'DeliveryArray'] },
    examples: {
      page: { summary: 'One test', parameters: { ...PATH, ...RECENT }, response: pageOf(TEST) },
    },
  },
  {
    ...COMMON,
    method: 'post',
    path: `${DELIVERIES}/{deliveryId}/redeliver`,
    operationId: 'redeliver',
    summary: 'Send a delivery again',
    description: `Sends the same body with the same \`webhook-id\` or Message-ID, and retries for 24 hours again. ${WRITERS}`,
    success: { status: '202', description: 'The delivery is queued.', schemas: ['Delivery'] },
    examples: {
      one: { summary: 'A delivery', parameters: { ...PATH, deliveryId: DELIVERY_ID }, response: TEST },
    },
  },
];
