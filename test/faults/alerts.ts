/**
 * What befalls the alerts service, its Redis and the receivers of its webhooks, while the usage of accounts crosses one threshold after the
 * other. Then each crossing must have been delivered at least once, under one id and as one text.
 */
import { randomUUID } from 'node:crypto';
import type { AlertFilters } from '@meterline/catalog';
import { AlertStore } from '@meterline/service/alerts';
import type { Queue } from 'bullmq';
import { ALERT_SETTINGS, type Receiver, startReceiver } from '../harness/alerts.js';
import { usageEvent } from '../harness/events.js';
import { holdsWithin, pause } from '../harness/queue.js';
import { type ServiceProcess, withConstants } from '../harness/services.js';
import { LOCK_MS } from './stream-run.js';
import type { Found, Run } from './suite.js';

interface AlertRun extends Run {
  readonly receiver: Receiver;
  /** Kills the service and starts it again. */
  readonly restart: (afterMs: number) => Promise<void>;
}
export type AlertInjection = (run: AlertRun) => Promise<void>;

/** Kills the service at random: while it evaluates alerts, between a mark and its delivery, or while it delivers. */
export const killed: AlertInjection = async ({ random, restart, brief, signal }) => {
  for (let times = brief ? 1 : random.integer(2, 4); times > 0; times -= 1) {
    await restart(random.integer(0, 300));
    await pause(random.integer(0, 800), signal);
  }
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
const SETTLED_WITHIN_MS = 600_000;
const ACCOUNTS = 8;
const THRESHOLDS = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
/** Events of each account: together the amount of its alert. */
const EVENTS = 20;

export async function playAlerts(run: Run, inject: AlertInjection): Promise<Found> {
  const { fixture, name, random, signal, complain } = run;
  const { product } = fixture;
  const receiver = await startReceiver();
  const alerts = new AlertStore(product.redis);
  const accounts = Array.from({ length: ACCOUNTS }, (_, index) => `${name}-${index}`);
  const startAlerts = () => product.startAlerts(withConstants({}, { lockMs: LOCK_MS }));
  const services: ServiceProcess[] = [];

  try {
    const settings = { ...ALERT_SETTINGS, measure: 'usage', thresholds: THRESHOLDS, filters: FILTERS } as const;
    const made = accounts.map((account) => alerts.create(account, { ...settings, url: receiver.url }, new Date()));
    const wanted = (await Promise.all(made)).flatMap(({ id }) => THRESHOLDS.map((threshold) => `${id} ${threshold}`));
    services.push(await product.startIngest(), await startAlerts());
    const restart = async (afterMs: number) => {
      await services.pop()?.kill();
      await pause(afterMs, signal);
      services.push(await startAlerts());
    };
    const sending = send(product.queue, accounts, signal);
    const few = random.integer(1, 20);
    await holdsWithin(SETTLED_WITHIN_MS, signal, () => receiver.received.length >= few);
    await inject({ ...run, receiver, restart });
    await sending;
    const overAt = Date.now();

    await holdsWithin(SETTLED_WITHIN_MS, signal, async () => {
      const found = new Set(receiver.received.map(crossingOf));
      return wanted.every((crossing) => found.has(crossing)) && (await alerts.deliveries.countPending()) === 0;
    });
    const recoveryMs = Date.now() - overAt;
    const stuck = await alerts.deliveries.countPending();
    for (const service of services) {
      const code = await service.stop();
      if (code !== 0) complain(`a service ended with ${code}`);
    }
    const seen = new Map<string, Set<string>>();
    for (const one of receiver.received) {
      const texts = seen.get(crossingOf(one)) ?? new Set();
      seen.set(crossingOf(one), texts.add(`${one.id} ${one.text}`));
    }
    const differences = [...new Set([...wanted, ...seen.keys()])].flatMap((crossing) => {
      const [texts, due] = [seen.get(crossing)?.size ?? 0, wanted.includes(crossing) ? 1 : 0];
      return texts === due ? [] : [`${crossing}: ${texts} webhooks instead of ${due}`];
    });
    return { events: wanted.length, stuck, recoveryMs, differences, compare: async () => [] };
  } finally {
    await Promise.all(services.map((service) => service.kill()));
    for (const account of accounts) await alerts.eraseOf(account);
    await receiver.close();
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
