import { describe, expect, it } from '@jest/globals';
import { insertStatement } from './insert-block.js';
import { REJECTED_EVENTS } from './rejected-events.js';
import { USAGE_EVENTS } from './usage-events.js';

describe('insert statements', () => {
  it('of usage events name every column that is stored, and none that the table computes', () => {
    expect(insertStatement(USAGE_EVENTS)).toBe(
      'INSERT INTO usage_events (account_id, event_id, timestamp, workspace, resource_type, resource_name, ' +
        'resource_uuid, billing_dimension, usage, revision, voided, cost, price_revision, price_book) FORMAT Native',
    );
  });

  it('of rejected events name every column', () => {
    expect(insertStatement(REJECTED_EVENTS)).toBe(
      'INSERT INTO rejected_events (received_at, job_id, position, account_id, reason, message, payload) FORMAT Native',
    );
  });
});
