/**
 * The same events and requests in OpenMeter's schema and query shape: raw events whose values are read from JSON, and one
 * query for each meter, which is one type of event. Source: openmeterio/openmeter, openmeter/streaming/clickhouse.
 */
import { BILLING_DIMENSIONS } from '@meterline/catalog';
import type { Warehouse } from '@meterline/warehouse';
import { execute, select } from '../stack.js';
import { LARGE_ACCOUNT } from './corpus.js';
import type { BareClickHouse } from './http-client.js';
import type { Question } from './questions.js';

const CREATE = `
CREATE TABLE om_events
(
    namespace    String,
    id           String,
    type         LowCardinality(String),
    subject      String,
    source       String,
    time         DateTime,
    data         String,
    ingested_at  DateTime,
    stored_at    DateTime,
    INDEX om_events_stored_at stored_at TYPE minmax GRANULARITY 4,
    store_row_id String
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(time)
ORDER BY (namespace, type, subject, toStartOfHour(time))`;

/** Selects a share of the events by the hash of their id. */
const LOAD = `
INSERT INTO om_events
SELECT
  'default', toString(event_id), billing_dimension, account_id, 'meterline', timestamp,
  concat('{"usage":"', toString(usage), '","workspace":"', workspace, '","resource_type":"', resource_type,
         '","resource_name":"', resource_name, '","resource_uuid":"', resource_uuid, '"}'),
  timestamp, timestamp, toString(event_id)
FROM usage_events
WHERE cityHash64(event_id) % 1000 < {per_mille: UInt32}
SETTINGS max_insert_threads = 2, max_memory_usage = 0`;

/** Copies about the given number of events. @returns the exact number */
export async function loadOpenMeter(warehouse: Warehouse, share: number): Promise<number> {
  await execute(warehouse, CREATE);
  await execute(warehouse, LOAD, { per_mille: Math.round(share * 1000) });
  const [row] = await select<{ events: number }>(warehouse, 'SELECT toUInt32(count()) AS events FROM om_events');
  return row?.events ?? 0;
}

export const VALUES = {
  float: "toFloat64OrNull(JSON_VALUE(data, '$.usage'))",
  decimal: "toDecimal128OrNull(JSON_VALUE(data, '$.usage'), 19)",
} as const;

/** Queries all meters, one after the other. @returns milliseconds */
export async function askOpenMeter(
  clickhouse: BareClickHouse,
  { window, resolution, groupBy }: Question,
  value: keyof typeof VALUES,
): Promise<number> {
  // A meter determines the billing dimension and the resource type.
  const groups = groupBy.filter((name) => name !== 'billing_dimension' && name !== 'resource_type');
  const shown = groups.map((name) => `, JSON_VALUE(data, '$.${name}') AS ${name}`).join('');
  const interval = resolution === 'hourly' ? 'toIntervalHour(1)' : 'toIntervalDay(1)';
  const query = `
SELECT tumbleStart(time, ${interval}, 'UTC') AS windowstart, tumbleEnd(time, ${interval}, 'UTC') AS windowend,
       sum(${VALUES[value]}) AS value${shown}
FROM om_events
WHERE namespace = 'default' AND type = {type: String} AND subject = {subject: String}
  AND time >= {from: UInt32} AND time < {to: UInt32}
GROUP BY ${['windowstart', 'windowend', ...groups].join(', ')}
ORDER BY windowstart FORMAT JSONCompactEachRow`;
  const asked = { subject: LARGE_ACCOUNT, from: window.startTime / 1000, to: window.endTime / 1000 };
  let total = 0;
  for (const type of BILLING_DIMENSIONS) total += (await clickhouse.run(query, { ...asked, type })).ms;
  return total;
}
