import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { pricedEvent } from '../../../../test/priced-event.js';
import { createTestDatabase, type TestDatabase } from '../../../../test/stack.js';
import { insertUsageEvents } from '../events/usage-events.js';
import { sealNext } from '../rollups/sealing.js';
import { NO_CELLS } from '../rollups/watermarks.js';
import type { Selection } from './plan.js';
import { readResourceTypes, resourceTypesStatement } from './resource-types.js';

const START = Date.UTC(2025, 9, 1);
const END = Date.UTC(2025, 9, 2);
const WINDOW = { startTime: START, endTime: END };

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

function selection(accountId: string, filters: Selection['filters'] = {}): Selection {
  return { accountId, window: WINDOW, filters };
}

it('the statement asks for the types of events that count in the window', () => {
  expect(resourceTypesStatement(selection('acme'))).toEqual({
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
      pricedEvent({ accountId: 'order', resourceType }),
    );
    await insertUsageEvents(database.warehouse, events);
    expect(await readResourceTypes(database.warehouse, selection('order'))).toEqual(['sandbox', 'agent', 'volume']);
  });

  it('are those of the window: startTime is inside, endTime is not', async () => {
    await insertUsageEvents(database.warehouse, [
      pricedEvent({ accountId: 'window', resourceType: 'sandbox', timestamp: START - 1 }),
      pricedEvent({ accountId: 'window', resourceType: 'agent', timestamp: START }),
      pricedEvent({ accountId: 'window', resourceType: 'job', timestamp: END - 1 }),
      pricedEvent({ accountId: 'window', resourceType: 'volume', timestamp: END }),
    ]);
    expect(await readResourceTypes(database.warehouse, selection('window'))).toEqual(['agent', 'job']);
  });

  it('do not include the type of a voided event', async () => {
    const voided = pricedEvent({ accountId: 'void', resourceType: 'job' });
    await insertUsageEvents(database.warehouse, [voided, pricedEvent({ accountId: 'void' })]);
    expect(await readResourceTypes(database.warehouse, selection('void'))).toEqual(['sandbox', 'job']);
    await insertUsageEvents(database.warehouse, [{ ...voided, revision: 1, voided: true }]);
    expect(await readResourceTypes(database.warehouse, selection('void'))).toEqual(['sandbox']);
  });

  it('are its own alone', async () => {
    await insertUsageEvents(database.warehouse, [pricedEvent({ accountId: 'somebody' })]);
    expect(await readResourceTypes(database.warehouse, selection('nobody'))).toEqual([]);
  });

  it('are those of what the filters select, from events and from cells', async () => {
    await insertUsageEvents(database.warehouse, [
      pricedEvent({ accountId: 'filters', resourceType: 'job', workspace: 'a', resourceName: 'x' }),
      pricedEvent({
        accountId: 'filters',
        resourceType: 'agent',
        workspace: 'b',
        resourceName: 'x',
        resourceUuid: 'u',
      }),
      pricedEvent({ accountId: 'filters', resourceType: 'volume', workspace: 'b', resourceName: 'y' }),
    ]);
    while (await sealNext(database.warehouse, END));
    for (const cells of [
      NO_CELLS,
      { hourly: END, daily: END, staleHours: [] },
      { hourly: END, daily: END, staleHours: [START] },
    ]) {
      const types = (filters: Selection['filters']) =>
        readResourceTypes(database.warehouse, selection('filters', filters), cells);
      expect(await types({})).toEqual(['agent', 'job', 'volume']);
      expect(await types({ workspace: ['b'] })).toEqual(['agent', 'volume']);
      expect(await types({ resource_name: ['x'], workspace: ['b', 'c'] })).toEqual(['agent']);
      expect(await types({ resource_uuid: ['', 'v'] })).toEqual(['job', 'volume']);
      expect(await types({ resource_type: ['job', 'volume'], resource_name: ['y'] })).toEqual(['volume']);
    }
  });
});
