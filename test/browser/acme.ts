/** What the account of the browser tests used. The tests run on 15 November 2025, at noon. */
import { event } from '../harness/events.js';

export const BOXES = 130;
/** A name that a spreadsheet would run. */
export const FORMULA = '=HYPERLINK("http://evil.example.com","pay")';

const padded = (number: number) => String(number).padStart(3, '0');

/** box-001 costs 0.001 USD, box-130 costs 0.13: 8.515 in all. */
const boxes = Array.from({ length: BOXES }, (_, index) =>
  event({
    resourceName: `box-${padded(index + 1)}`,
    resourceUuid: `uuid-${padded(index + 1)}`,
    workspace: index % 2 === 0 ? 'main' : 'staging',
    cost: `0.${padded(index + 1)}`,
    usage: String(index + 1),
    at: `2025-11-0${1 + (index % 9)}T10:30:00Z`,
  }),
);

const other = { resourceUuid: '', at: '2025-11-14T09:00:00Z' } as const;

/** 75.015002000001 USD in the thirty days up to NOW. */
export const ACME = [
  ...boxes,
  event({
    ...other,
    resourceType: 'agent',
    resourceName: 'support',
    billingDimension: 'agent_compute_runtime_gbs',
    cost: '40',
    usage: '1000',
  }),
  event({
    ...other,
    resourceType: 'agent',
    resourceName: 'support',
    billingDimension: 'agent_async_requests_count',
    cost: '0.000002',
    usage: '7',
  }),
  event({
    ...other,
    resourceType: 'job',
    resourceName: 'nightly',
    billingDimension: 'job_compute_runtime_gbs',
    cost: '20.000000000001',
    usage: '500.25',
  }),
  event({
    ...other,
    resourceType: 'volume',
    resourceName: FORMULA,
    billingDimension: 'volume_storage_gbs',
    cost: '5',
    usage: '3',
  }),
  event({
    ...other,
    resourceType: 'custom_domain',
    resourceName: 'app.example.com',
    billingDimension: 'custom_domain_active_time_hours',
    cost: '1.5',
    usage: '720',
  }),
  // In the thirty days before.
  event({
    ...other,
    resourceType: 'agent',
    resourceName: 'support',
    billingDimension: 'agent_compute_runtime_gbs',
    cost: '32',
    usage: '800',
    at: '2025-10-10T09:00:00Z',
  }),
];
