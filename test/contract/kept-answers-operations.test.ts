/** A question, whose answer is kept, and what seals, repairs, re-prices or erases, in orders of their steps. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { RedisClient } from '@meterline/access';
import { DEFAULT_PRICE_BOOK, MS_PER_DAY } from '@meterline/catalog';
import { eraseAccount, findAccount } from '@meterline/operations/erasure';
import { CostChanges, reprice } from '@meterline/operations/repricing';
import { oneServer, registerPriceBook, repairNext, sealNext } from '@meterline/warehouse';
import { Actor, pausing } from '../interleaving.js';
import { storeEvents } from '../late-events.js';
import { pricedEvent } from '../priced-event.js';
import { type Allowed, openStage, type Stage } from './kept-answers-stage.js';

/** Orders with more changes between the actors are left out. */
const CHANGES = 3;
/** How many orders each test plays. */
const ORDERS = { sealing: 73, repairing: 65, repricing: 51, erasing: 26 };
const TIMEOUT_MS = 1_800_000;

/** Sealed one after the other, each with its accounts. */
const DAYS = { repairing: Date.UTC(2022, 0, 1), repricing: Date.UTC(2022, 1, 1), erasing: Date.UTC(2022, 2, 1) };
/** The days that are sealed in an order begin here. */
const FIRST_SEALING = Date.UTC(2022, 3, 1);

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
});
afterAll(() => stage.close());

function repairer(id: string): Actor {
  return new Actor(async (pause) => {
    await repairNext(pausing(stage.warehouse, pause, ['run']), id);
  });
}

function sealer(until: number): Actor {
  return new Actor(async (pause) => {
    const paused = pausing(stage.warehouse, pause, ['run']);
    while (await sealNext(paused, until));
  });
}

function renewing(pause: (name: string) => Promise<void>) {
  return async (accounts: readonly string[]) => {
    await pause('renew_stamps');
    await stage.stamps.renew(accounts, accounts);
  };
}

describe('in every order, an answer has what was acknowledged before it was asked for', () => {
  it(
    'beside a writer of a sealed hour that is being repaired',
    async () => {
      const day = DAYS.repairing;
      const accountOf = await stage.accounts(() => day);
      await stage.sealUntil(day + MS_PER_DAY);
      const played = await stage.play(2, CHANGES, async (order) => {
        const [account, id] = [accountOf(order), randomUUID()];
        await storeEvents(stage.warehouse, [pricedEvent({ accountId: account, timestamp: day + 2 })], id);
        await stage.stamps.renew([account], [account]);
        const actors = [stage.writer(account, day + 1, id), repairer(id)];
        const allowed: Allowed = ([hasEnded]) => (hasEnded ? ['3'] : ['2', '3']);
        return { account, day, actors, figure: 'totalUsage', allowed };
      });
      expect(played).toBe(ORDERS.repairing);
    },
    TIMEOUT_MS,
  );

  it(
    'beside a re-pricing',
    async () => {
      const day = DAYS.repricing;
      // Else the first order would have one step more than the others.
      await registerPriceBook(oneServer(stage.warehouse), DEFAULT_PRICE_BOOK);
      const accountOf = await stage.accounts(() => day);
      await stage.sealUntil(day + MS_PER_DAY);
      const played = await stage.play(1, CHANGES, (order) => {
        const account = accountOf(order);
        const window = { startTime: day, endTime: day + MS_PER_DAY };
        const repricer = new Actor(async (pause) => {
          const options = { scope: { accountId: account, window }, book: DEFAULT_PRICE_BOOK, dryRun: false, step: 10 };
          const shards = oneServer(pausing(stage.warehouse, pause, ['run']));
          const [{ signal }, onProgress] = [new AbortController(), () => undefined];
          await reprice({ ...options, shards, renewStamps: renewing(pause), signal, onProgress }, new CostChanges());
        });
        // A GB-second at the book's price.
        const allowed: Allowed = ([hasEnded]) => (hasEnded ? ['0.0000115'] : ['1', '0.0000115']);
        return { account, day, actors: [repricer], figure: 'totalCost', allowed };
      });
      expect(played).toBe(ORDERS.repricing);
    },
    TIMEOUT_MS,
  );

  it(
    'beside an erasure',
    async () => {
      const day = DAYS.erasing;
      const accountOf = await stage.accounts(() => day);
      await stage.sealUntil(day + MS_PER_DAY);
      const played = await stage.play(1, CHANGES, (order) => {
        const account = accountOf(order);
        const eraser = new Actor(async (pause) => {
          const shards = oneServer(pausing(stage.warehouse, pause, ['run']));
          const options = {
            shards,
            withRedis: <T>(work: (redis: RedisClient) => Promise<T>) => work(stage.redis),
            account,
          };
          const found = await findAccount(options);
          await eraseAccount(options, found, new AbortController().signal, () => undefined);
        });
        const allowed: Allowed = ([hasEnded]) => (hasEnded ? ['0'] : ['1', '0']);
        return { account, day, actors: [eraser], figure: 'totalUsage', allowed };
      });
      expect(played).toBe(ORDERS.erasing);
    },
    TIMEOUT_MS,
  );

  it(
    'beside a writer of an hour that is just being sealed, and its sealer',
    async () => {
      const dayOf = (order: number) => FIRST_SEALING + order * MS_PER_DAY;
      const accountOf = await stage.accounts(dayOf);
      await stage.sealUntil(FIRST_SEALING);
      const allowed: Allowed = ([hasEnded]) => (hasEnded ? ['2'] : ['1', '2']);
      const played = await stage.play(2, CHANGES, (order) => {
        const [account, day] = [accountOf(order), dayOf(order)];
        const actors = [stage.writer(account, day + 1), sealer(day + MS_PER_DAY)];
        return { account, day, actors, figure: 'totalUsage', allowed };
      });
      expect(played).toBe(ORDERS.sealing);
    },
    TIMEOUT_MS,
  );
});
