/** Describes the operations for saved views. Contract tests send the examples and compare the responses. */
import type { OperationSketch } from '@meterline/api';
import { MAX_VIEWS, VIEW_LIST_PARAMETERS } from '@meterline/catalog';
import { API_ERRORS } from '../http/errors.js';

const VIEWS = '/v0/accounts/{accountId}/views';
const VIEW = `${VIEWS}/{name}`;

const createdAt = '2025-11-15T12:00:00.000Z';
const ACCOUNT = { accountId: 'acme' };
const PATH = { ...ACCOUNT, name: 'Agents this month' };
const BODY = { query: 'period=month&group=billing_dimension&type=agent' };
const SHOWN = { name: PATH.name, ...BODY, createdAt, updatedAt: createdAt };

const COMMON = { tag: 'Views', isExtension: true, errors: API_ERRORS } as const;
const WRITERS = 'For admins of the account only.';

export const VIEW_OPERATIONS: readonly OperationSketch[] = [
  {
    ...COMMON,
    method: 'get',
    path: VIEWS,
    operationId: 'listViews',
    summary: 'List the saved views of an account',
    description:
      'A view is what the page shows: a period, groups, filters and the form of the chart. Members do not see views that group or filter ' +
      'by workspace. Since version 2026-04-28, the response is an object with pages, and parameters are accepted. Earlier versions ' +
      'return an array of all views.',
    query: VIEW_LIST_PARAMETERS,
    success: { description: 'The views.', schemas: ['SavedViewPage', 'SavedViewArray'] },
    examples: {
      page: {
        summary: 'A page',
        parameters: { ...ACCOUNT, 'Svc-Version': '2026-04-28' },
        response: { data: [SHOWN], meta: { hasMore: false, nextCursor: '', total: 1 } },
      },
    },
  },
  {
    ...COMMON,
    method: 'get',
    path: VIEW,
    operationId: 'getView',
    summary: 'Get a saved view',
    description: 'Members get 404 for a view that groups or filters by workspace.',
    success: { description: 'The view.', schemas: ['SavedView'] },
    examples: { one: { summary: 'A view', parameters: PATH, response: SHOWN } },
    errors: [...API_ERRORS, 'NotFound'],
  },
  {
    ...COMMON,
    method: 'put',
    path: VIEW,
    operationId: 'saveView',
    summary: 'Save a view',
    description: `Creates the view, or replaces its query. ${WRITERS} An account has at most ${MAX_VIEWS} views.`,
    body: ['SaveView'],
    success: { description: 'The saved view.', schemas: ['SavedView'] },
    examples: { one: { summary: 'A view of agents', parameters: PATH, body: BODY, response: SHOWN } },
    errors: [...API_ERRORS, 'Conflict'],
  },
  {
    ...COMMON,
    method: 'delete',
    path: VIEW,
    operationId: 'deleteView',
    summary: 'Delete a saved view',
    description: `Deletes the view. ${WRITERS}`,
    success: { status: '204', description: 'The view is deleted. The response has no body.', schemas: [] },
    examples: { one: { summary: 'A view', parameters: PATH } },
    errors: [...API_ERRORS, 'NotFound'],
  },
];
