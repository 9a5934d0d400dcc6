/** What the examples of the OpenAPI document show: their events, a key, and where tokens come from. */
import { DEFAULT_PRICE_BOOK } from '@meterline/catalog';
import type { Alert } from '@meterline/service/alerts';
import { oneServer, registerPriceBook } from '@meterline/warehouse';
import { ALERT_SETTINGS } from '../harness/alerts.js';
import { NOW, type TestApi } from '../harness/api.js';
import { event } from '../harness/events.js';

export const PROTECTED_RESOURCE = { issuer: 'https://auth.example.com/', publicUrl: 'https://billing.example.com' };

/** @returns the alert of the examples */
export async function seedExamples(api: TestApi): Promise<Alert> {
  await registerPriceBook(oneServer(api.dependencies.warehouse), DEFAULT_PRICE_BOOK);
  const end = new Date('2026-11-15T00:00:00Z');
  const service = { account: 'acme', role: 'member', clientId: 'client_1f9a3c0b5d7e24680a', expiresAt: end } as const;
  const { keyId } = await api.keys.create(service, NOW);
  await api.keys.noteUse(keyId, new Date('2025-11-15T11:00:00Z'));
  const agent = { resourceType: 'agent', resourceName: 'support' } as const;
  await api.seed([
    event({
      ...agent,
      workspace: 'production',
      billingDimension: 'agent_compute_runtime_gbs',
      usage: '1000000',
      cost: '11.5',
    }),
    event({
      ...agent,
      workspace: 'staging',
      billingDimension: 'agent_compute_runtime_gbs',
      usage: '200000',
      cost: '2.3',
      at: '2025-10-02T09:00:00Z',
    }),
    event({
      ...agent,
      eventId: '01999f3c-2a00-7c31-9d5e-0b6f1e2d3c4b',
      resourceName: 'crawler',
      resourceUuid: '',
      workspace: 'staging',
      billingDimension: 'agent_async_requests_count',
      usage: '250000',
      cost: '0.05',
      at: '2025-10-02T09:00:00Z',
    }),
  ]);
  const settings = { ...ALERT_SETTINGS, filters: { workspace: ['production'] } };
  return api.dependencies.alerts.create('acme', settings, NOW);
}
