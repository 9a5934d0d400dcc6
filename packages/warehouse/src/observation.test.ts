import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../../../test/stack.js';
import { createWarehouse } from './client.js';
import { checkConnection } from './statements/check-connection.js';
import { insertRejectedEvents } from './statements/rejected-events.js';
import { readResourceTypes } from './statements/resource-types.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** @returns what the observer was told, in order, and the warehouse it watches */
function watched(changes: { url?: string; database?: string } = {}) {
  const told: string[] = [];
  const observe = (name: string) => {
    told.push(`${name} begins`);
    return (outcome: string, error?: unknown) => void told.push(`${name} ${outcome}${error ? ' with an error' : ''}`);
  };
  return { told, warehouse: createWarehouse({ ...database.options, ...changes, observe }) };
}

const DAY = { startTime: Date.UTC(2026, 0, 1), endTime: Date.UTC(2026, 0, 2) };

it('tells of the beginning and the end of each statement by its name', async () => {
  const { told, warehouse } = watched();
  await checkConnection(warehouse);
  await readResourceTypes(warehouse, 'acme', DAY);
  const event = { receivedAt: 0, jobId: '1', position: 0, accountId: '', message: '', payload: '{}' };
  await insertRejectedEvents(warehouse, [{ ...event, reason: 'job_empty' }]);
  await warehouse.close();
  expect(told).toEqual([
    'check_connection begins',
    'check_connection ok',
    'read_resource_types begins',
    'read_resource_types ok',
    'insert_rejected_events begins',
    'insert_rejected_events ok',
  ]);
});

it('tells a server that refuses from one that does not answer, and hands on the error', async () => {
  const lost = watched({ database: 'not_there' });
  await expect(readResourceTypes(lost.warehouse, 'acme', DAY)).rejects.toThrow('not_there');
  await lost.warehouse.close();
  expect(lost.told.at(-1)).toBe('read_resource_types refused with an error');

  const away = watched({ url: 'http://127.0.0.1:1' });
  await expect(readResourceTypes(away.warehouse, 'acme', DAY)).rejects.toThrow('ECONNREFUSED');
  await away.warehouse.close();
  expect(away.told.at(-1)).toBe('read_resource_types unanswered with an error');
});
