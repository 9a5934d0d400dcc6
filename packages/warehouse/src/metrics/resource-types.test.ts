import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../../../../test/stack.js';
import { insertUsageEvents, type PricedEvent } from '../events/usage-events.js';
import { readResourceTypes, resourceTypesStatement } from './resource-types.js';

const START = Date.UTC(2025, 9, 1);
const END = Date.UTC(2025, 9, 2);
const WINDOW = { startTime: START, endTime: END };

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

function event(changes: Partial<PricedEvent>): PricedEvent {
  return {
    eventId: randomUUID(),
    accountId: 'acme',
    workspace: 'production',
    resourceType: 'sandbox',
    resourceName: 'builder',
    resourceUuid: '',
    billingDimension: 'sandbox_compute_runtime_gbs',
    usage: 1n,
    timestamp: START,
    revision: 0,
    voided: false,
    cost: 0n,
    priceRevision: 0,
    priceBook: 0,
    ...changes,
  };
}

it('the statement asks for the types of events that count in the window', () => {
  expect(resourceTypesStatement('acme', WINDOW)).toEqual({
    name: 'read_resource_types',
    query: `
SELECT DISTINCT resource_type
FROM
(
  SELECT DISTINCT resource_type
  FROM usage_events FINAL
  WHERE account_id = {account_id: String}
    AND event_hour >= {from_0: UInt32}
    AND event_hour < {to_0: UInt32}
    AND NOT voided
)`,
    query_params: { account_id: 'acme', from_0: START / 1000, to_0: END / 1000 },
  });
});

describe('the resource types of an account', () => {
  it('come in the order of the catalog, also those that cost nothing', async () => {
    const events = (['volume', 'agent', 'sandbox', 'agent'] as const).map((resourceType) =>
      event({ accountId: 'order', resourceType }),
    );
    await insertUsageEvents(database.warehouse, events);
    expect(await readResourceTypes(database.warehouse, 'order', WINDOW)).toEqual(['sandbox', 'agent', 'volume']);
  });

  it('are those of the window: startTime is inside, endTime is not', async () => {
    await insertUsageEvents(database.warehouse, [
      event({ accountId: 'window', resourceType: 'sandbox', timestamp: START - 1 }),
      event({ accountId: 'window', resourceType: 'agent', timestamp: START }),
      event({ accountId: 'window', resourceType: 'job', timestamp: END - 1 }),
      event({ accountId: 'window', resourceType: 'volume', timestamp: END }),
    ]);
    expect(await readResourceTypes(database.warehouse, 'window', WINDOW)).toEqual(['agent', 'job']);
  });

  it('do not include the type of a voided event', async () => {
    const voided = event({ accountId: 'void', resourceType: 'job' });
    await insertUsageEvents(database.warehouse, [voided, event({ accountId: 'void' })]);
    expect(await readResourceTypes(database.warehouse, 'void', WINDOW)).toEqual(['sandbox', 'job']);
    await insertUsageEvents(database.warehouse, [{ ...voided, revision: 1, voided: true }]);
    expect(await readResourceTypes(database.warehouse, 'void', WINDOW)).toEqual(['sandbox']);
  });

  it('are its own alone', async () => {
    await insertUsageEvents(database.warehouse, [event({ accountId: 'somebody' })]);
    expect(await readResourceTypes(database.warehouse, 'nobody', WINDOW)).toEqual([]);
  });
});
