/** Sealing one large hour: how long it takes, and how much memory. */
import { setTimeout as delay } from 'node:timers/promises';
import { type EpochMs, MS_PER_HOUR } from '@meterline/catalog';
import { raiseWatermarks, sealNext, type Warehouse } from '@meterline/warehouse';
import { processorMs } from '../harness/processes.js';
import { select } from '../harness/stack.js';
import { fillUsage, SANDBOX } from './fill.js';
import type { Bench } from './fixture.js';

/** Of `--events`, and no more than ten million. */
const SHARE_OF_EVENTS = 2;
const MOST_EVENTS = 10_000_000;
const GOAL_MS = 60_000;
const GOAL_MB = 1_000;
const DATABASE = 'sealing';
const HOUR: EpochMs = Date.UTC(2025, 9, 20, 12);
const EVENTS_PER_ACCOUNT = 1_000;
/** As many as measured of large accounts: an event in three is of a group of its own. */
const GROUPS_PER_ACCOUNT = 370;
const SAMPLE_MS = 50;

const DEFINITIONS = [`intDiv(number, {accounts: UInt32}) % ${GROUPS_PER_ACCOUNT} AS box`];
const COLUMNS = {
  ...{ ...SANDBOX, at: '{hour: Int64} + number % 3600 * 1000' },
  account: "concat('account-', leftPad(toString(number % {accounts: UInt32}), 6, '0'))",
  resourceName: "concat('sandbox-', toString(box % 50))",
  resourceUuid: 'toString(reinterpretAsUUID(sipHash128(box, number % {accounts: UInt32})))',
};

export const sealing: Bench = {
  name: 'sealing',
  async run({ fixture, signal, events: inAll }) {
    const events = Math.min(MOST_EVENTS, Math.ceil(inAll / SHARE_OF_EVENTS));
    const accounts = Math.ceil(events / EVENTS_PER_ACCOUNT);
    const { warehouse } = await fixture.product(DATABASE);
    // One statement would hold all names at once.
    for (let first = 0; first < events; first += 1_000_000) {
      signal.throwIfAborted();
      const rows = Math.min(1_000_000, events - first);
      await fillUsage(warehouse, COLUMNS, DEFINITIONS, { first, rows, accounts, hour: HOUR });
    }
    await raiseWatermarks([warehouse], 'hourly', { sealingUntil: HOUR, sealedUntil: HOUR });
    const { ClickHouse } = fixture.serverPids;
    const before = processorMs(ClickHouse) ?? 0;
    const started = performance.now();
    const megabytes = await mostMemory(warehouse, sealNext([warehouse], HOUR + MS_PER_HOUR));
    const value = performance.now() - started;
    const processor = (processorMs(ClickHouse) ?? 0) - before;
    await fixture.drop(DATABASE);
    return [
      {
        what: `an hour of ${events.toLocaleString('en')} events in ${accounts.toLocaleString('en')} accounts`,
        ...{ value, unit: 'ms' },
        beside: [
          { what: 'processor time of ClickHouse', value: processor, unit: 'ms' },
          { what: 'memory of its statements', value: megabytes, unit: 'MB' },
        ],
        reach: {
          text: `≤ ${GOAL_MS.toLocaleString('en')} ms and ${GOAL_MB.toLocaleString('en')} MB`,
          met: value <= GOAL_MS && megabytes <= GOAL_MB,
        },
      },
    ];
  },
};

/** @returns the most that statements of the database had at once while this lasted, sampled, in MB */
async function mostMemory(warehouse: Warehouse, work: Promise<unknown>): Promise<number> {
  const query = `SELECT sum(memory_usage) AS bytes FROM system.processes
    WHERE current_database = currentDatabase() AND query NOT LIKE '%system.processes%'`;
  let [isOver, most] = [false, 0];
  const ended = work.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    const [row] = await select<{ bytes: string }>(warehouse, query);
    most = Math.max(most, Number(row?.bytes ?? 0));
    await delay(SAMPLE_MS);
  }
  await ended;
  return most / 1e6;
}
