/** For tests: an event as producers write it, as text. */
export const SANDBOX_EVENT = {
  eventId: '0190c5e4-7b1a-7def-8abc-0123456789ab',
  accountId: 'acme',
  workspace: 'prod',
  resourceType: 'sandbox',
  resourceName: 'builder',
  billingDimension: 'sandbox_compute_runtime_gbs',
  usage: '12.5',
  timestamp: '2026-01-01T00:00:00.123Z',
};
