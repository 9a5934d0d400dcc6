import { expect, it } from '@jest/globals';
import { REJECTION_REASONS } from './rejection.js';

it('reason codes are stable: operators filter and alert by them', () => {
  expect(REJECTION_REASONS).toEqual([
    'job_not_an_object',
    'job_invalid',
    'job_empty',
    'job_too_large',
    'event_not_an_object',
    'unknown_field',
    'missing_field',
    'invalid_event_id',
    'invalid_account_id',
    'invalid_workspace',
    'invalid_resource_type',
    'invalid_resource_name',
    'invalid_resource_uuid',
    'invalid_billing_dimension',
    'dimension_mismatch',
    'invalid_usage',
    'invalid_timestamp',
    'timestamp_in_future',
    'invalid_revision',
    'invalid_void',
    'no_price',
    'refused_by_storage',
  ]);
});
