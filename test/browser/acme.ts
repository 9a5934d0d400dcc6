/** The usage of the account in the browser tests. The tests run at noon on 15 November 2025. */
import { event } from '../harness/events.js';

export const BOXES = 130;
/** A name that a spreadsheet would run as a formula. */
export const FORMULA = '=HYPERLINK("http://evil.example.com","pay")';

const padded = (number: number) => String(number).padStart(3, '0');

/** box-001 costs 0.001 USD, and box-130 costs 0.13 USD: 8.515 USD in total. */
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

const at = '2025-11-14T09:00:00Z';
/** In the previous thirty days. */
const before = '2025-10-10T09:00:00Z';

const others = (
  [
    ['agent', 'support', 'agent_compute_runtime_gbs', '40', '1000', at],
    ['agent', 'support', 'agent_async_requests_count', '0.000002', '7', at],
    ['job', 'nightly', 'job_compute_runtime_gbs', '20.000000000001', '500.25', at],
    ['volume', FORMULA, 'volume_storage_gbs', '5', '3', at],
    ['custom_domain', 'app.example.com', 'custom_domain_active_time_hours', '1.5', '720', at],
    ['agent', 'support', 'agent_compute_runtime_gbs', '32', '800', before],
  ] as const
).map(([resourceType, resourceName, billingDimension, cost, usage, time]) =>
  event({ resourceType, resourceName, resourceUuid: '', billingDimension, cost, usage, at: time }),
);

/** 75.015002000001 USD in the thirty days before NOW. */
export const ACME = [...boxes, ...others];
