/** Why a quorum of all replicas: with a worker on one and a sealer on another that lags, by a fake of such replicas. */
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import {
  createWarehouse,
  hostsOf,
  localDatabase,
  readMetrics,
  readWatermarks,
  sealNext,
  type Warehouse,
  type WarehouseOptions,
} from '@meterline/warehouse';
import { pricedEvent } from '../harness/events.js';
import { storeEvents } from '../harness/late-events.js';
import { createTestDatabase, type TestDatabase } from '../harness/stack.js';
import { type LaggingReplicas, startLaggingReplicas } from './lagging-replica.js';

const DAY = { startTime: Date.UTC(2025, 9, 1), endTime: Date.UTC(2025, 9, 2) };

let databases: [TestDatabase, TestDatabase];
let replicas: LaggingReplicas;
let open: Warehouse[];
beforeEach(async () => {
  databases = await Promise.all([createTestDatabase(), createTestDatabase()]);
  replicas = await startLaggingReplicas([aloneOf(databases[0]), aloneOf(databases[1])]);
  open = [];
});
afterEach(async () => {
  await Promise.all(open.map((warehouse) => warehouse.close()));
  replicas.stop();
  await Promise.all(databases.map((database) => database.drop()));
});

/** Of databases on shards the tables of the first shard, which know of no other. */
function aloneOf({ options }: TestDatabase): WarehouseOptions {
  const { cluster, database, url } = options;
  if (!cluster) return options;
  return { ...options, url: hostsOf(url)[0] ?? url, database: localDatabase(database), cluster: undefined };
}

function connect(replica: 0 | 1, insertQuorum: number | undefined): Warehouse {
  const options = aloneOf(databases[replica]);
  const cluster = insertQuorum === undefined ? undefined : { name: 'fake', insertQuorum };
  const warehouse = createWarehouse({ ...options, url: replicas.urls[replica], cluster });
  open.push(warehouse);
  return warehouse;
}

/** What a question is answered, once everything has arrived everywhere, when a sealer worked beside the writer. */
async function answerAfterSealing(insertQuorum: number | undefined): Promise<string[]> {
  const [worker, sealer] = [connect(0, insertQuorum), connect(1, insertQuorum)];
  await storeEvents(worker, [pricedEvent()]);
  while (await sealNext([sealer], DAY.endTime));
  await replicas.release();
  const answers = [worker, sealer].map(async (warehouse) => {
    const { hourly, daily } = await readWatermarks(warehouse);
    const rollups = { hourly: hourly.sealedUntil, daily: daily.sealedUntil, dirtyHours: [] };
    const question = { accounts: ['acme'], window: DAY, filters: {}, groupBy: [], limit: 1, rollups };
    const { totals } = await readMetrics(warehouse, { ...question, resolution: 'daily' });
    return totals.cost;
  });
  return Promise.all(answers);
}

it('an event that was acknowledged before its hour is sealed on another replica is in every answer with a quorum of both replicas', async () => {
  expect(await answerAfterSealing(2)).toEqual(['1', '1']);
});

it('an event that was acknowledged before its hour is sealed on another replica is lost for good without one: the fake does what the quorum prevents', async () => {
  expect(await answerAfterSealing(undefined)).toEqual(['0', '0']);
});
