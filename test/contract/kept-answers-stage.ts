/**
 * For tests: a query process that keeps its answers, stopped before each step of a question, beside actors that change what is
 * asked about, in every order of their steps. After each step another question to the same process, and one to a second process:
 * whatever was acknowledged when a question began must be in its answer, computed, shared or kept.
 */
import { randomUUID } from 'node:crypto';
import { expect } from '@jest/globals';
import { AnswerStamps, REDIS_PREFIX, type RedisClient } from '@meterline/access';
import { createRedis } from '@meterline/api';
import { DEFAULT_PRICE_BOOK, formatTimestamp, MS_PER_DAY } from '@meterline/catalog';
import { createCellsReader, KeptAnswers } from '@meterline/query';
import { noTracing } from '@meterline/service/tracing';
import { insertUsageEvents, sealNext, type Warehouse } from '@meterline/warehouse';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { EventStore } from '../../services/ingest/src/event-store.js';
import { Pricer } from '../../services/ingest/src/intake.js';
import { createIngestMetrics } from '../../services/ingest/src/metrics.js';
import { Actor, pausing, playOrders } from '../interleaving.js';
import { openWriters, repairAll } from '../late-events.js';
import { pricedEvent } from '../priced-event.js';
import { createTestDatabase, testRedisUrl } from '../stack.js';
import { bearer, metricsBody, metricsPath, startApi, type TestApi } from './fixture.js';

/** More than any test plays orders. */
const ACCOUNTS = process.env.METERLINE_TEST_SHORT === undefined ? 600 : 20;
const NOW = Date.UTC(2026, 0, 1);

/** What an answer may say when some of the actors have ended; first what it says before they begin. */
export type Allowed = (ended: readonly boolean[]) => readonly string[];

/** Of one order. */
export interface Scene {
  readonly account: string;
  /** The day that is asked about. */
  readonly day: number;
  /** Those that change something; the question is added to them. */
  readonly actors: readonly Actor[];
  readonly figure: 'totalUsage' | 'totalCost';
  readonly allowed: Allowed;
}

export interface Stage {
  readonly warehouse: Warehouse;
  readonly stamps: AnswerStamps;
  readonly redis: RedisClient;
  /**
   * @param actors how many there are besides the question
   * @param changes from one actor to another, at most, in an order that is played
   * @returns how many orders were played
   */
  play(actors: 1 | 2, changes: number, begin: (order: number) => Promise<Scene> | Scene): Promise<number>;
  /** An account for each order, with an event of one GB-second and one dollar on its day. */
  accounts(dayOf: (order: number) => number): Promise<(order: number) => string>;
  /** The worker's own steps, with a job of one event of one GB-second. */
  writer(account: string, timestamp: number, id?: string): Actor;
  /** The same of a worker that has just begun, after something that was done while none ran. */
  firstWriter(account: string, timestamp: number, before: () => Promise<void>): Actor;
  sealUntil(until: number): Promise<void>;
  close(): Promise<void>;
}

export async function openStage(): Promise<Stage> {
  const database = await createTestDatabase();
  const { warehouse } = database;
  const redis = createRedis(testRedisUrl());
  await redis.connect();
  // Those that operations renew.
  const stamps = new AnswerStamps(redis, REDIS_PREFIX);
  const outcomes: string[] = [];
  const answers = new WatchedAnswers(1_000_000, (outcome) => outcomes.push(outcome));
  const clock = movingClock();
  const cells = createCellsReader(warehouse, clock);
  let pauseQuestion: (name: string) => Promise<void> = async () => undefined;
  // The first two are one process: they keep and share the same answers.
  const same = await startApi({ warehouse, clock, readCells: cells, stamps, answers });
  const { accounts, keys } = same.dependencies;
  const stopping = await startApi({
    ...{ accounts, answers, clock, keys },
    warehouse: pausing(warehouse, (name) => pauseQuestion(name)),
    readCells: async (...asked) => {
      await pauseQuestion('read_seals');
      return cells(...asked);
    },
    stamps: {
      read: async (account) => {
        await pauseQuestion('read_stamps');
        return stamps.read(account);
      },
    },
  });
  const itsStamps = new AnswerStamps(redis, REDIS_PREFIX);
  const itsCells = createCellsReader(warehouse, clock);
  const second = await startApi({ ...{ accounts, clock, keys, warehouse }, readCells: itsCells, stamps: itsStamps });

  async function playScene(
    { account, actors, allowed, day, figure }: Scene,
    order: readonly number[],
    next: Parameters<Parameters<typeof playOrders>[2]>[0],
  ): Promise<void> {
    const key = await same.key(account);
    const window = { startTime: formatTimestamp(day), endTime: formatTimestamp(day + MS_PER_DAY) };
    const path = metricsPath(account, { ...window, groupBy: 'billing_dimension' });
    const endedNow = () => actors.map(({ hasEnded }) => hasEnded);
    const figureNow = async (api: TestApi) => {
      const { body } = await api.request(path, bearer(key));
      return String(metricsBody.parse(body).summary[figure] ?? 0);
    };
    const ask = async (api: TestApi, who: string, begun?: () => readonly boolean[] | undefined) => {
      const before = endedNow();
      const shown = await figureNow(api);
      const may = allowed(begun?.() ?? before);
      expect({ order, who, before, shown }).toEqual({ order, who, before, shown: may.includes(shown) ? shown : may });
    };
    // Kept by the second process from here on.
    expect(await figureNow(second)).toBe(allowed(endedNow())[0]);
    const question = new Actor(async (pause) => {
      let begun: readonly boolean[] | undefined;
      pauseQuestion = async (name) => {
        await pause(name);
        // It has what was acknowledged before its stamps were read.
        begun ??= endedNow();
      };
      await ask(stopping, 'the question', () => begun);
    });
    const waiting: Promise<void>[] = [];
    for (let move = await next([...actors, question]); move; move = await next([...actors, question])) {
      // What ends with this step has ended then.
      await new Promise((resolve) => setImmediate(resolve));
      const actor = actors[move.turn];
      const changesNothing = actor && move.statement.startsWith('read_') && !actor.hasEnded;
      if (!move.isNew || changesNothing) continue;
      if (actor) await ask(second, 'the second process');
      // It may wait for the question that is stopped. On a busy machine it would come after later steps without this.
      const waits = answers.joined();
      const asked = ask(same, 'the same process');
      waiting.push(asked);
      await Promise.race([asked, waits]);
    }
    await Promise.all(waiting);
    await Promise.all([ask(same, 'the same process, in the end'), ask(second, 'the second process, in the end')]);
    // After a minute marks are due for everybody, and repairing them would be steps of a later order.
    for (const id of await openWriters(warehouse)) await repairAll(warehouse, id);
  }

  return {
    warehouse,
    stamps,
    redis,
    play: async (count, changes, begin) => {
      outcomes.length = 0;
      let orders = 0;
      const played = await playOrders(count + 1, changes, async (next, order) => {
        const scene = await begin(orders);
        orders += 1;
        await playScene(scene, order, next);
      });
      expect(new Set(outcomes)).toEqual(new Set(['hit', 'shared', 'miss']));
      return played;
    },
    accounts: async (dayOf) => {
      const run = randomUUID();
      const account = (order: number) => `order-${order}-${run}`;
      const orders = Array.from({ length: ACCOUNTS }, (_, order) => order);
      await insertUsageEvents(
        warehouse,
        orders.map((order) => pricedEvent({ accountId: account(order), timestamp: dayOf(order) })),
      );
      return account;
    },
    writer: (account, timestamp, id = randomUUID()) =>
      new Actor((pause) => store({ warehouse, stamps, id, pause }, account, timestamp)),
    firstWriter: (account, timestamp, before) =>
      new Actor(async (pause) => {
        await pause('before');
        await before();
        const renewAll = async () => {
          await pause('renew_all');
          await stamps.renewAll();
        };
        await store({ warehouse, stamps, id: randomUUID(), pause, renewAll }, account, timestamp);
      }),
    sealUntil: async (until) => {
      while (await sealNext(warehouse, until));
    },
    close: async () => {
      await Promise.all([stopping.stop(), same.stop(), second.stop()]);
      redis.disconnect();
      await database.drop();
    },
  };
}

class WatchedAnswers extends KeptAnswers {
  #tellJoined: () => void = () => undefined;

  /** Resolves when the next request waits for the answer of another. */
  joined(): Promise<void> {
    return new Promise((resolve) => {
      this.#tellJoined = resolve;
    });
  }

  override join(...asked: Parameters<KeptAnswers['join']>): ReturnType<KeptAnswers['join']> {
    this.#tellJoined();
    return super.join(...asked);
  }
}

/** Of two questions each reads the watermarks of its own moment. */
function movingClock(): () => Date {
  let now = NOW;
  return () => {
    now += 2_000;
    return new Date(now);
  };
}

interface Writing extends Pick<Stage, 'warehouse' | 'stamps'> {
  readonly id: string;
  readonly pause: (name: string) => Promise<void>;
  /** Not of a worker that has stored something before: else no other renewal would count. */
  readonly renewAll?: () => Promise<void>;
}

async function store(
  { warehouse, stamps, id, pause, renewAll = async () => undefined }: Writing,
  account: string,
  timestamp: number,
): Promise<void> {
  const event = {
    ...{
      eventId: randomUUID(),
      accountId: account,
      workspace: 'late',
      resourceType: 'sandbox',
      resourceName: 'builder',
    },
    ...{ billingDimension: 'sandbox_compute_runtime_gbs', usage: 1, timestamp: formatTimestamp(timestamp) },
  };
  const queued = { id: randomUUID(), receivedAt: NOW, data: JSON.stringify(event) };
  const intake = new Pricer(DEFAULT_PRICE_BOOK).priceJob(queued, NOW, 0);
  const eventStore = new EventStore({
    warehouse: pausing(warehouse, pause),
    writer: id,
    stamps: {
      renewAll,
      renew: async (changed, sealed) => {
        await pause('renew_stamps');
        await stamps.renew(changed, sealed);
      },
    },
    log: pino({ enabled: false }),
    signal: new AbortController().signal,
    metrics: createIngestMetrics(new Registry()),
    tracer: noTracing().tracer,
  });
  await eventStore.store([intake]);
}
