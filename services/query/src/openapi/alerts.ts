/** The operations about alerts, with examples that the contract tests send and compare. */
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
const SETTINGS = {
  name: 'Monthly spend',
  period: 'month',
  measure: 'cost',
  amount: '100',
  thresholds: DEFAULT_THRESHOLDS,
  filters: { workspace: ['production'] },
  url: 'https://example.com/hooks',
};
const SHOWN = { id: ID, ...SETTINGS, createdAt, updatedAt: createdAt, fired: [] };
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
      ...{ alertId: ID, ...ACCOUNT, name: SETTINGS.name },
      period: { startTime: '2025-11-01T00:00:00Z', endTime: '2025-12-01T00:00:00Z' },
      ...{ measure: 'cost', amount: 100 },
    },
  },
};
const pageOf = (...data: readonly unknown[]) => ({
  data,
  meta: { hasMore: false, nextCursor: '', total: data.length },
});

const shared = { tag: 'Alerts', isExtension: true, errors: [...API_ERRORS, 'NotFound'] } as const;
const WRITERS = 'Admins of the account only.';

export const ALERT_OPERATIONS: readonly OperationSketch[] = [
  {
    ...shared,
    method: 'get',
    path: ALERTS,
    operationId: 'listAlerts',
    summary: 'The alerts of an account',
    description:
      'A member is not shown those that filter by workspace. An object with pages since version 2026-04-28, and takes ' +
      'parameters since then; before, an array of everything.',
    query: ALERT_LIST_PARAMETERS,
    success: { description: 'The alerts.', schemas: ['AlertPage', 'AlertArray'] },
    examples: {
      page: { summary: 'A page', parameters: { ...ACCOUNT, ...RECENT }, response: pageOf(SHOWN) },
    },
    errors: API_ERRORS,
  },
  {
    ...shared,
    method: 'post',
    path: ALERTS,
    operationId: 'createAlert',
    summary: 'Create an alert',
    description:
      'An alert posts a signed webhook (Standard Webhooks) within a minute of the event that crosses a threshold: once for ' +
      'each threshold and period, whatever is corrected afterwards. What is crossed already is told at once. **The secret ' +
      `is in this response alone.** ${WRITERS} An account has at most ${MAX_ALERTS} alerts.`,
    body: ['NewAlert'],
    success: {
      status: '201',
      description: 'The alert was created.',
      schemas: ['AlertWithSecret'],
      headers: {
        Location: {
          description: 'Relative to the request.',
          required: true,
          schema: { type: 'string' },
        },
      },
    },
    examples: {
      ofProduction: {
        summary: 'What production spends in a month',
        parameters: ACCOUNT,
        body: SETTINGS,
        response: { ...SHOWN, secret: SECRET },
      },
    },
    errors: [...API_ERRORS, 'Conflict'],
  },
  {
    ...shared,
    method: 'get',
    path: ALERT,
    operationId: 'getAlert',
    summary: 'An alert',
    description: 'With what it has fired in the current period.',
    success: { description: 'The alert.', schemas: ['Alert'] },
    examples: { one: { summary: 'One that has fired nothing', parameters: PATH, response: SHOWN } },
  },
  {
    ...shared,
    method: 'patch',
    path: ALERT,
    operationId: 'changeAlert',
    summary: 'Change an alert',
    description:
      `Replaces the members that are sent. ${WRITERS} Another period, measure, amount or filter makes another query of it: ` +
      'its thresholds fire again for what is crossed already. With `rotateSecret` the response has a new `secret`, and the ' +
      'last nine sign too for 24 hours.',
    body: ['AlertChange'],
    success: { description: 'The alert as it is now.', schemas: ['AlertWithSecret'] },
    examples: {
      thresholds: {
        summary: 'Another threshold',
        parameters: PATH,
        body: { thresholds: [50, 80, 100, 120] },
        response: { ...SHOWN, thresholds: [50, 80, 100, 120], updatedAt: '2025-11-15T12:00:00.001Z' },
      },
    },
  },
  {
    ...shared,
    method: 'delete',
    path: ALERT,
    operationId: 'deleteAlert',
    summary: 'Delete an alert',
    description: `With its deliveries; those that are pending are dropped. ${WRITERS}`,
    success: { status: '204', description: 'The alert is deleted. The response has no body.', schemas: [] },
    examples: { one: { summary: 'One alert', parameters: PATH } },
  },
  {
    ...shared,
    method: 'post',
    path: `${ALERT}/test`,
    operationId: 'testAlert',
    summary: 'Send a test',
    description: `Posts a webhook of the type \`alert.test\`, in one attempt. ${WRITERS} What became of it is in the deliveries.`,
    success: { status: '202', description: 'The webhook is on its way.', schemas: ['Delivery'] },
    examples: { one: { summary: 'A test', parameters: PATH, response: TEST } },
  },
  {
    ...shared,
    method: 'get',
    path: DELIVERIES,
    operationId: 'listDeliveries',
    summary: 'The webhooks of an alert',
    description:
      'What was posted and what became of it, for 30 days; of an account the newest 1,000. Pages and parameters as those of ' +
      'the list of alerts.',
    query: DELIVERY_LIST_PARAMETERS,
    success: { description: 'The deliveries.', schemas: ['DeliveryPage', 'DeliveryArray'] },
    examples: {
      page: { summary: 'One test', parameters: { ...PATH, ...RECENT }, response: pageOf(TEST) },
    },
  },
  {
    ...shared,
    method: 'post',
    path: `${DELIVERIES}/{deliveryId}/redeliver`,
    operationId: 'redeliver',
    summary: 'Send a webhook again',
    description: `Posts the same body under the same \`webhook-id\`, with attempts over 24 hours as the first time. ${WRITERS}`,
    success: { status: '202', description: 'The webhook is on its way.', schemas: ['Delivery'] },
    examples: {
      one: { summary: 'A delivery', parameters: { ...PATH, deliveryId: DELIVERY_ID }, response: TEST },
    },
  },
];
