/**
 * Example requests with their answers, digit for digit. The contract tests send each request to the service, with the usage
 * in these answers as events, and compare.
 */
import type { Examples } from '@meterline/api';
import { BILLING_DIMENSIONS, DIMENSIONS } from '@meterline/catalog';

const WINDOW = { startTime: '2025-10-01T00:00:00Z', endTime: '2025-10-03T00:00:00Z' };
const ACCOUNT = { id: 'acme', name: 'acme', role: 'admin', createdAt: '2025-11-15T12:00:00.000Z' };

export const METRICS_EXAMPLES: Examples = {
  byWorkspace: {
    summary: 'Cost and usage of agents’ compute by workspace, day by day',
    parameters: {
      accountId: 'acme',
      ...WINDOW,
      resolution: 'daily',
      groupBy: ['workspace', 'billing_dimension'],
      billingDimension: ['agent_compute_runtime_gbs'],
    },
    answer: {
      ...WINDOW,
      resolution: 'daily',
      summary: { totalCost: 13.8, totalUsage: 1200000 },
      data: [
        {
          workspace: 'production',
          resourceType: 'agent',
          billingDimension: 'agent_compute_runtime_gbs',
          summary: { cost: 11.5, usage: 1000000 },
          timeseries: [
            { timestamp: '2025-10-01T00:00:00Z', cost: 11.5, usage: 1000000 },
            { timestamp: '2025-10-02T00:00:00Z', cost: 0, usage: 0 },
          ],
        },
        {
          workspace: 'staging',
          resourceType: 'agent',
          billingDimension: 'agent_compute_runtime_gbs',
          summary: { cost: 2.3, usage: 200000 },
          timeseries: [
            { timestamp: '2025-10-01T00:00:00Z', cost: 0, usage: 0 },
            { timestamp: '2025-10-02T00:00:00Z', cost: 2.3, usage: 200000 },
          ],
        },
      ],
      meta: { hasMore: false, nextCursor: '' },
    },
  },
  byResource: {
    summary: 'A resource of one workspace, and a name that several workspaces use, which has no `workspace`',
    parameters: { accountId: 'acme', ...WINDOW, resolution: 'monthly', groupBy: ['resource_name'] },
    answer: {
      ...WINDOW,
      resolution: 'monthly',
      summary: { totalCost: 13.85 },
      data: [
        {
          resourceType: 'agent',
          resourceName: 'support',
          summary: { cost: 13.8 },
          timeseries: [{ timestamp: '2025-10-01T00:00:00Z', cost: 13.8 }],
        },
        {
          workspace: 'staging',
          resourceType: 'agent',
          resourceName: 'crawler',
          summary: { cost: 0.05 },
          timeseries: [{ timestamp: '2025-10-01T00:00:00Z', cost: 0.05 }],
        },
      ],
      meta: { hasMore: false, nextCursor: '' },
    },
  },
  total: {
    summary: 'What everything cost',
    parameters: { accountId: 'acme', ...WINDOW, resolution: 'monthly' },
    answer: {
      ...WINDOW,
      resolution: 'monthly',
      summary: { totalCost: 13.85 },
      data: [{ summary: { cost: 13.85 }, timeseries: [{ timestamp: '2025-10-01T00:00:00Z', cost: 13.85 }] }],
      meta: { hasMore: false, nextCursor: '' },
    },
  },
};

export const EVENTS_EXAMPLES: Examples = {
  ofResource: {
    summary: 'Why the requests of one agent cost five cents',
    parameters: { accountId: 'acme', ...WINDOW, resourceName: ['crawler'] },
    answer: {
      data: [
        {
          eventId: '01999f3c-2a00-7c31-9d5e-0b6f1e2d3c4b',
          timestamp: '2025-10-02T09:00:00Z',
          workspace: 'staging',
          resourceType: 'agent',
          resourceName: 'crawler',
          resourceUuid: '',
          billingDimension: 'agent_async_requests_count',
          usage: 250000,
          cost: 0.05,
          voided: false,
          revision: 0,
          priceRevision: 0,
          priceBook: 0,
          price: { amount: 0.2, per: 1000000, effectiveFrom: '1970-01-01T00:00:00Z' },
          history: [],
        },
      ],
      meta: { hasMore: false, nextCursor: '' },
    },
  },
};

export const GROUP_BY_EXAMPLES: Examples = {
  dimensions: {
    summary: 'The five dimensions',
    parameters: { accountId: 'acme' },
    answer: { values: ['workspace', 'resource_type', 'resource_name', 'resource_uuid', 'billing_dimension'] },
  },
};

export const RESOURCE_TYPES_EXAMPLES: Examples = {
  inOctober: {
    summary: 'An account that used agents only',
    parameters: { accountId: 'acme', ...WINDOW },
    answer: { values: ['agent'] },
  },
};

export const BILLING_DIMENSIONS_EXAMPLES: Examples = {
  dimensions: {
    summary: 'All of them',
    parameters: { accountId: 'acme' },
    answer: {
      values: BILLING_DIMENSIONS.map((billingDimension) => ({ billingDimension, ...DIMENSIONS[billingDimension] })),
    },
  },
};

export const ACCOUNTS_EXAMPLES: Examples = {
  page: {
    summary: 'A page, since version 2026-04-28',
    parameters: { 'Svc-Version': '2026-04-28', sort: 'name:asc', limit: 50 },
    answer: { data: [ACCOUNT], meta: { hasMore: false, nextCursor: '', total: 1 } },
  },
  array: {
    summary: 'Everything at once, at version 2026-04-16',
    parameters: { 'Svc-Version': '2026-04-16' },
    answer: [ACCOUNT],
  },
};

const KEY = {
  id: '3bd5a0f1c2e49b687d05aa31',
  account: 'acme',
  role: 'member',
  createdAt: '2025-11-15T12:00:00.000Z',
  expiresAt: '2026-11-15T00:00:00.000Z',
};

export const KEY_LIST_EXAMPLES: Examples = {
  page: {
    summary: 'A page, since version 2026-04-28',
    parameters: { clientId: 'client_1f9a3c0b5d7e24680a', 'Svc-Version': '2026-04-28', limit: 50 },
    answer: {
      data: [{ ...KEY, lastUsedAt: '2025-11-15T11:00:00.000Z', revoked: false }],
      meta: { hasMore: false, nextCursor: '', total: 1 },
    },
  },
};

export const KEY_CREATION_EXAMPLES: Examples = {
  untilAutumn: {
    summary: 'A key for reports, for a year',
    parameters: { clientId: 'reports' },
    body: { role: 'member', expiresAt: '2026-11-15T00:00:00Z' },
    answer: { ...KEY, revoked: false, key: `mlk_${KEY.id}_${'0123456789abcdef'.repeat(4)}` },
  },
};

export const REVOCATION_EXAMPLES: Examples = {
  revoke: {
    summary: 'A key of a service account',
    parameters: { clientId: 'client_1f9a3c0b5d7e24680a', apiKeyId: KEY.id },
  },
};

export const READINESS_EXAMPLES: Examples = {
  ready: { summary: 'ClickHouse and Redis answer', parameters: {}, answer: { status: 'ready' } },
};
