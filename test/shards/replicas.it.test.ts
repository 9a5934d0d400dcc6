/** Why a quorum of all replicas: with a worker on one and a sealer on another that lags, by a fake of such replicas. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
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
import { createTestDatabase, storeEvents, type TestDatabase } from '../harness/stack.js';

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

interface Insert {
  readonly to: string;
  readonly url: URL;
  readonly headers: Record<string, string>;
  readonly body: Buffer;
}

interface LaggingReplicas {
  /** The address of each replica. */
  readonly urls: readonly [string, string];
  /** Everything that was held back arrives. */
  release(): Promise<void>;
  stop(): void;
}

/**
 * A fake of replicas that are written asynchronously: two databases, and a proxy in front of each. What is inserted through one
 * reaches the other when it is released, unless the insert asks for a quorum of both: then before it is answered. Real replicas
 * cannot run here; what this shows is only why Meterline needs the quorum.
 *
 * @param replicas two databases with the same schema, on one server
 */
async function startLaggingReplicas(replicas: readonly [WarehouseOptions, WarehouseOptions]): Promise<LaggingReplicas> {
  const held: Insert[] = [];
  const send = async ({ to, url, headers, body }: Insert) => {
    url.searchParams.set('database', to);
    // An id of a statement that has been answered may still be taken on the server, and the copy would be refused for it.
    url.searchParams.delete('query_id');
    return fetch(url, { method: 'POST', headers, body: new Uint8Array(body) });
  };

  const deliver = async (insert: Insert) => {
    const answer = await send(insert);
    if (!answer.ok) throw new Error(`The other replica refused a copy: ${await answer.text()}`);
  };

  const pass = async (own: number, incoming: IncomingMessage, response: ServerResponse) => {
    const body = await buffer(incoming);
    const [here, there] = own === 0 ? replicas : [replicas[1], replicas[0]];
    const url = new URL(incoming.url ?? '/', here.url);
    const headers = { authorization: incoming.headers.authorization ?? '' };
    const answer = await send({ to: here.database, url, headers, body });
    const isInsert = (url.searchParams.get('query') ?? body.toString()).trimStart().startsWith('INSERT');
    if (isInsert && answer.ok) {
      const copy = { to: there.database, url: new URL(url), headers, body };
      if (Number(url.searchParams.get('insert_quorum') ?? 1) > 1) await deliver(copy);
      else held.push(copy);
    }
    response.writeHead(answer.status).end(Buffer.from(await answer.arrayBuffer()));
  };

  const servers = [0, 1].map((own) =>
    createServer((incoming, response) => void pass(own, incoming, response).catch(() => response.destroy())),
  );
  const [first, second] = await Promise.all(servers.map(listening));
  return {
    urls: [first ?? '', second ?? ''],
    release: async () => {
      for (const insert of held.splice(0)) await deliver(insert);
    },
    stop: () => {
      for (const server of servers) server.close();
      for (const server of servers) server.closeAllConnections();
    },
  };
}

async function listening(server: Server): Promise<string> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return `http://127.0.0.1:${port}`;
}
