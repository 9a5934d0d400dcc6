/**
 * Example requests with their answers, digit for digit. The contract tests send each request to the service, with the usage
 * in these answers as events, and compare.
 */
export interface OperationExample {
  readonly summary: string;
  /** The values in the path, the query and the headers, by name. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** Undefined for an answer without a body. */
  readonly answer?: unknown;
}

export type Examples = Readonly<Record<string, OperationExample>>;

const WINDOW = { startTime: '2025-10-01T00:00:00Z', endTime: '2025-10-03T00:00:00Z' };
const ACCOUNT = { id: 'acme', name: 'acme', role: 'admin', createdAt: '2025-11-15T12:00:00.000Z' };

export const METRICS_EXAMPLES: Examples = {
  byWorkspace: {
    summary: 'Cost and usage by workspace and billing dimension, day by day',
    parameters: { accountId: 'acme', ...WINDOW, resolution: 'daily', groupBy: ['workspace', 'billing_dimension'] },
    answer: {
      ...WINDOW,
      resolution: 'daily',
      summary: { totalCost: 11.55, totalUsage: 1250000 },
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
          billingDimension: 'agent_async_requests_count',
          summary: { cost: 0.05, usage: 250000 },
          timeseries: [
            { timestamp: '2025-10-01T00:00:00Z', cost: 0, usage: 0 },
            { timestamp: '2025-10-02T00:00:00Z', cost: 0.05, usage: 250000 },
          ],
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
      summary: { totalCost: 11.55 },
      data: [{ summary: { cost: 11.55 }, timeseries: [{ timestamp: '2025-10-01T00:00:00Z', cost: 11.55 }] }],
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

export const REVOCATION_EXAMPLES: Examples = {
  revoke: {
    summary: 'A key of a service account',
    parameters: { clientId: 'client_1f9a3c0b5d7e24680a', apiKeyId: '3bd5a0f1c2e49b687d05aa31' },
  },
};

export const HEALTH_EXAMPLES: Examples = {
  up: { summary: 'The process runs', parameters: {}, answer: { status: 'ok' } },
};

export const READINESS_EXAMPLES: Examples = {
  ready: { summary: 'ClickHouse and Redis answer', parameters: {}, answer: { status: 'ready' } },
};
