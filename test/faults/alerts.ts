/**
 * What befalls the alerts service, its Redis, the receivers of its webhooks and its mail server, while the usage of accounts crosses one
 * threshold after the other. Then each crossing must have been delivered at least once, under one id and as one text: to the receiver, or to
 * each address that the mail server accepts.
 */
import { randomUUID } from 'node:crypto';
import type { AlertFilters } from '@meterline/catalog';
import { AlertStore } from '@meterline/service/alerts';
import type { Queue } from 'bullmq';
import { ALERT_SETTINGS, type Receiver, startReceiver } from '../harness/alerts.js';
import { usageEvent } from '../harness/events.js';
import { type MailServer, reply, startMailServer } from '../harness/mail.js';
import { holdsWithin, pause } from '../harness/queue.js';
import { type ServiceProcess, withConstants } from '../harness/services.js';
import { LOCK_MS } from './stream-run.js';
import type { Found, Run } from './suite.js';

interface AlertRun extends Run {
  readonly receiver: Receiver;
  readonly mail: MailServer;
  /** Kills the service and starts it again. */
  readonly restart: (afterMs: number) => Promise<void>;
}
export type AlertInjection = (run: AlertRun) => Promise<void>;

const REJECTED = 'gone@example.com';
/** The mail server always rejects the last of them. */
export const RECIPIENTS = ['ops@example.com', 'billing@example.com', REJECTED];

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

export const mailServerDown: AlertInjection = async ({ random, mail, restart, signal }) => {
  await mail.close();
  await pause(random.integer(500, 2_000), signal);
  if (random.chance(0.5)) await restart(0);
  await mail.reopen();
};

/** It replies to no recipient, so that attempts end by their timeout. */
export const mailServerSlow: AlertInjection = async ({ random, mail, restart, signal }) => {
  const { onRecipient } = mail;
  mail.onRecipient = () => undefined;
  await pause(random.integer(500, 2_000), signal);
  if (random.chance(0.5)) await restart(0);
  mail.onRecipient = onRecipient;
};

/** It defers mails now and then, beside the recipient that it always rejects. */
export const recipientRejected: AlertInjection = async ({ random, mail, restart, signal }) => {
  const { onRecipient } = mail;
  mail.onRecipient = (to, done) => (random.chance(0.5) ? done(reply(451, '4.3.0 try again')) : onRecipient(to, done));
  await pause(random.integer(500, 2_000), signal);
  if (random.chance(0.5)) await restart(0);
  mail.onRecipient = onRecipient;
};

const FILTERS: AlertFilters = { billingDimension: ['sandbox_compute_runtime_gbs'] };
const SETTLED_WITHIN_MS = 600_000;
const ACCOUNTS = 8;
const THRESHOLDS = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
/** Events of each account: together the amount of its alert. */
const EVENTS = 20;

/** @param to the addresses of alerts by e-mail; default: alerts are webhooks */
export async function playAlerts(run: Run, inject: AlertInjection, to?: readonly string[]): Promise<Found> {
  const { fixture, name, random, signal, complain } = run;
  const { product } = fixture;
  const receiver = await startReceiver();
  const mail = await startMailServer();
  mail.onRecipient = (address, done) => done(address === REJECTED ? reply(550, '5.1.1 no such user') : undefined);
  const alerts = new AlertStore(product.redis);
  const accounts = Array.from({ length: ACCOUNTS }, (_, index) => `${name}-${index}`);
  const smtp = { ALERT_SMTP_URL: mail.url, ALERT_SMTP_FROM: 'billing@example.com' };
  const startAlerts = () => product.startAlerts(withConstants(smtp, { lockMs: LOCK_MS }));
  const services: ServiceProcess[] = [];

  try {
    const settings = { ...ALERT_SETTINGS, measure: 'usage', thresholds: THRESHOLDS, filters: FILTERS } as const;
    const target = to ? { url: undefined, to } : { url: receiver.url };
    const made = accounts.map((account) => alerts.create(account, { ...settings, ...target }, new Date()));
    const receivers = to?.filter((address) => address !== REJECTED) ?? ['url'];
    const wanted = (await Promise.all(made)).flatMap(({ id }) =>
      THRESHOLDS.flatMap((threshold) => receivers.map((receiver) => `${id} ${threshold} ${receiver}`)),
    );
    const arrivals = () => [...receiver.received.map(webhookArrival), ...mail.received.map(mailArrival)];
    services.push(await product.startIngest(), await startAlerts());
    const restart = async (afterMs: number) => {
      await services.pop()?.kill();
      await pause(afterMs, signal);
      services.push(await startAlerts());
    };
    const sending = send(product.queue, accounts, signal);
    const few = random.integer(1, 20);
    await holdsWithin(SETTLED_WITHIN_MS, signal, () => arrivals().length >= few);
    await inject({ ...run, receiver, mail, restart });
    await sending;
    const overAt = Date.now();

    await holdsWithin(SETTLED_WITHIN_MS, signal, async () => {
      const found = new Set(arrivals().map(({ crossing }) => crossing));
      return wanted.every((crossing) => found.has(crossing)) && (await alerts.deliveries.countPending()) === 0;
    });
    const recoveryMs = Date.now() - overAt;
    const stuck = await alerts.deliveries.countPending();
    for (const service of services) {
      const code = await service.stop();
      if (code !== 0) complain(`a service ended with ${code}`);
    }
    const seen = new Map<string, Set<string>>();
    for (const { crossing, text } of arrivals()) seen.set(crossing, (seen.get(crossing) ?? new Set()).add(text));
    const differences = [...new Set([...wanted, ...seen.keys()])].flatMap((crossing) => {
      const [texts, due] = [seen.get(crossing)?.size ?? 0, wanted.includes(crossing) ? 1 : 0];
      return texts === due ? [] : [`${crossing}: ${texts} texts instead of ${due}`];
    });
    return { events: wanted.length, stuck, recoveryMs, differences, compare: async () => [] };
  } finally {
    await Promise.all(services.map((service) => service.kill()));
    for (const account of accounts) await alerts.eraseOf(account);
    await receiver.close();
    await mail.close();
  }
}

/** A crossing at one receiver, and what arrived for it: the same text under the same id, however often it arrives. */
interface Arrival {
  readonly crossing: string;
  readonly text: string;
}

function webhookArrival({ body: { data }, id, text }: Receiver['received'][number]): Arrival {
  return { crossing: `${data.alertId} ${data.threshold} url`, text: `${id} ${text}` };
}

function mailArrival({ id, to, text, html }: MailServer['received'][number]): Arrival {
  const [, alertId] = /delete the alert (\w+)\./.exec(text) ?? [];
  const [, threshold] = /^Threshold: (\d+)%/m.exec(text) ?? [];
  return { crossing: `${alertId} ${threshold} ${to}`, text: `${id} ${text} ${html}` };
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
