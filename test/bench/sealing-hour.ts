/** An hour of many accounts that is due for sealing, and what sealing it takes. */
import { setTimeout as delay } from 'node:timers/promises';
import { type EpochMs, MS_PER_HOUR } from '@meterline/catalog';
import { raiseWatermarks, sealNext, type Warehouse } from '@meterline/warehouse';
import { execute, select } from '../stack.js';

export const HOUR: EpochMs = Date.UTC(2025, 9, 20, 12);

const EVENTS_PER_ACCOUNT = 1_000;
/** As many as measured of large accounts: an event in three is of a group of its own. */
const GROUPS_PER_ACCOUNT = 370;
const PART = 1_000_000;
const SAMPLE_MS = 50;

const FILL = `
INSERT INTO usage_events (account_id, event_id, timestamp, workspace, resource_type, resource_name, resource_uuid,
                          billing_dimension, usage, revision, voided, cost, price_revision, price_book)
WITH intDiv(number, {accounts: UInt32}) % ${GROUPS_PER_ACCOUNT} AS box
SELECT concat('account-', leftPad(toString(number % {accounts: UInt32}), 6, '0')), generateUUIDv7(),
       toDateTime64({hour: UInt32}, 3, 'UTC') + number % 3600, 'production', 'sandbox', concat('sandbox-', toString(box % 50)),
       toString(reinterpretAsUUID(sipHash128(box, number % {accounts: UInt32}))), 'sandbox_compute_runtime_gbs',
       number % 977, 0, false, number % 977 * 0.0000115, 0, 0
FROM numbers({first: UInt32}, {events: UInt32})
SETTINGS max_memory_usage = 0`;

export function accountsOf(events: number): number {
  return Math.ceil(events / EVENTS_PER_ACCOUNT);
}

/** In parts, as one statement would hold all its names at once. */
export async function fill(warehouse: Warehouse, events: number, hour: EpochMs): Promise<void> {
  for (let first = 0; first < events; first += PART) {
    const part = { first, events: Math.min(PART, events - first) };
    await execute(warehouse, FILL, { ...part, hour: hour / 1000, accounts: accountsOf(events) });
  }
}

/** Watermarks never fall, so they are removed first. @returns how long it took, in milliseconds */
export async function sealHour(warehouse: Warehouse): Promise<number> {
  for (const table of ['rollup_seals', 'usage_hourly']) await execute(warehouse, `TRUNCATE TABLE ${table}`);
  await raiseWatermarks(warehouse, 'hourly', { sealingUntil: HOUR, sealedUntil: HOUR });
  const started = performance.now();
  await sealNext(warehouse, HOUR + MS_PER_HOUR);
  return performance.now() - started;
}

/** What the statements of a database have at once, sampled; nothing but sealing runs there. */
export class MemorySamples {
  readonly #sampling: Promise<void>;
  #isOver = false;
  #highest = 0;

  constructor(warehouse: Warehouse) {
    this.#sampling = this.#sample(warehouse);
  }

  /** @returns the most so far, in MB */
  async stop(): Promise<number> {
    this.#isOver = true;
    await this.#sampling;
    return this.#highest / 1e6;
  }

  async #sample(warehouse: Warehouse): Promise<void> {
    const query = `SELECT sum(memory_usage) AS bytes FROM system.processes
      WHERE current_database = currentDatabase() AND query NOT LIKE '%system.processes%'`;
    while (!this.#isOver) {
      const [row] = await select<{ bytes: string }>(warehouse, query);
      this.#highest = Math.max(this.#highest, Number(row?.bytes ?? 0));
      await delay(SAMPLE_MS);
    }
  }
}
