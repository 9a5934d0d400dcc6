/**
 * What befalls the alerts service, its Redis and the receivers of its webhooks, while the usage of accounts crosses one threshold after the
 * other. Then each crossing must have been delivered at least once, under one id and as one text.
 */
import { randomUUID } from 'node:crypto';
import { type AlertFilters, QUEUE_NAME } from '@meterline/catalog';
import { createRedisClient, REDIS_PREFIX } from '@meterline/service/access';
import { AlertStore } from '@meterline/service/alerts';
import { Queue } from 'bullmq';
import { ALERT_SETTINGS } from '../harness/alerts.js';
import { usageEvent } from '../harness/events.js';
import { type ServiceProcess, startAlerts, startIngest } from '../harness/services.js';
import { type Receiver, startReceiver } from '../harness/webhooks.js';
import type { Fixture } from './fixture.js';
import { SeededRandom } from './seeded-random.js';
import type { FinishedRun, RunOptions } from './stream-run.js';
import { holdsWithin, pause } from './waiting.js';

interface AlertRun {
  readonly fixture: Fixture;
  readonly random: SeededRandom;
  readonly signal: AbortSignal;
  readonly receiver: Receiver;
  /** Kills the service and starts it again. */
  readonly restart: (afterMs: number) => Promise<void>;
}
export type AlertInjection = (run: AlertRun) => Promise<void>;

/** While it judges, between a mark and its job, or while it delivers: whatever it does then. */
export const killed: AlertInjection = async ({ random, restart, signal }) => {
  for (let times = random.integer(2, 4); times > 0; times -= 1) {
    await restart(random.integer(0, 300));
    await pause(random.integer(0, 800), signal);
  }
};

export const redisKilled: AlertInjection = async ({ fixture, random, signal }) => {
  await fixture.redis.kill();
  await pause(random.integer(0, 2_000), signal);
  await fixture.redis.start();
};

export const receiverFails: AlertInjection = async ({ random, receiver, restart, signal }) => {
  const { respond } = receiver;
  receiver.respond = (response) => {
    const how = random.pick(['refuse', 'hang', 'cut'] as const);
    if (how === 'refuse') response.writeHead(random.pick([302, 404, 500])).end();
    if (how === 'cut') response.destroy();
  };
  await pause(random.integer(500, 2_000), signal);
  if (random.chance(0.5)) await restart(0);
  receiver.respond = respond;
};

const FILTERS: AlertFilters = { billingDimension: ['sandbox_compute_runtime_gbs'] };
const SETTLED_WITHIN_MS = 180_000;
const ACCOUNTS = 8;
const THRESHOLDS = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
/** Of each account: together the amount of its alert. */
const EVENTS = 20;

export async function playAlerts(
  fixture: Fixture,
  { fault, seed }: RunOptions,
  signal: AbortSignal,
  inject: AlertInjection,
): Promise<FinishedRun> {
  const random = new SeededRandom(seed);
  const receiver = await startReceiver();
  const redis = createRedisClient(fixture.redisUrl, { maxRetriesPerRequest: null });
  redis.on('error', () => undefined);
  const alerts = new AlertStore(redis, REDIS_PREFIX);
  const prefix = `${fault}-${seed}`;
  const queue = new Queue(QUEUE_NAME, { connection: { url: fixture.redisUrl, maxRetriesPerRequest: null }, prefix });
  queue.on('error', () => undefined);
  const accounts = Array.from({ length: ACCOUNTS }, (_, index) => `${prefix}-${index}`);
  const env = { ...fixture.environment('nothing').worker, QUEUE_PREFIX: prefix };
  const services: ServiceProcess[] = [];
  const start = async (run: Promise<ServiceProcess>) => void services.push(await run);
  const complaints: string[] = [];

  try {
    const made = accounts.map((account) =>
      alerts.create(
        account,
        { ...ALERT_SETTINGS, measure: 'usage', thresholds: THRESHOLDS, filters: FILTERS, url: receiver.url },
        new Date(),
      ),
    );
    const ids = (await Promise.all(made)).map(({ id }) => id);
    await start(startIngest(env));
    await start(startAlerts(env));
    const restart = async (afterMs: number) => {
      await services.pop()?.kill();
      await pause(afterMs, signal);
      await start(startAlerts(env));
    };
    const sending = send(queue, accounts, signal);
    await holdsWithin(SETTLED_WITHIN_MS, signal, () => receiver.received.length >= random.integer(1, 20));
    await inject({ fixture, random, signal, receiver, restart });
    await sending;
    const overAt = Date.now();

    const wanted = ids.flatMap((id) => THRESHOLDS.map((threshold) => `${id} ${threshold}`));
    await holdsWithin(SETTLED_WITHIN_MS, signal, async () => {
      const found = new Set(receiver.received.map(crossingOf));
      return wanted.every((crossing) => found.has(crossing)) && (await alerts.deliveries.countPending()) === 0;
    });
    const recoveryMs = Date.now() - overAt;
    const stuck = await alerts.deliveries.countPending();
    for (const service of services) {
      const code = await service.stop();
      if (code !== 0) complaints.push(`a service ended with ${code}`);
    }
    const seen = new Map<string, Set<string>>();
    for (const one of receiver.received) {
      const texts = seen.get(crossingOf(one)) ?? new Set();
      seen.set(crossingOf(one), texts.add(`${one.id} ${one.text}`));
    }
    const compared = {
      lost: wanted.filter((crossing) => !seen.has(crossing)),
      doubled: [...seen].flatMap(([crossing, texts]) =>
        texts.size > 1 || !wanted.includes(crossing) ? [crossing] : [],
      ),
      complaints,
    };
    const result = { fault, seed, events: wanted.length, stuck, recoveryMs, ...compared };
    return { result, recheck: async () => compared };
  } finally {
    await Promise.all(services.map((service) => service.kill()));
    for (const account of accounts) await alerts.eraseOf(account);
    await receiver.close();
    await queue.close();
    redis.disconnect();
  }
}

function crossingOf({ body: { data } }: Receiver['received'][number]): string {
  return `${data.alertId} ${data.threshold}`;
}

/** One event of each account after the other, so that turns find thresholds in between. */
async function send(queue: Queue, accounts: readonly string[], signal: AbortSignal): Promise<void> {
  const timestamp = new Date().toISOString();
  for (let n = 0; n < EVENTS; n += 1) {
    const events = accounts.map((accountId) =>
      usageEvent(n, { accountId, timestamp, eventId: randomUUID(), usage: 100 / EVENTS }),
    );
    await queue.add('usage', { events });
    await pause(150, signal);
  }
}
