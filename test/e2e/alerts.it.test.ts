/** From events to the signed webhooks of the thresholds that they cross, with the services as real processes. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { type Servers, startServers } from '@meterline/local-stack';
import { AlertStore, periodAt, webhookPayload } from '@meterline/service/alerts';
import { Webhook } from 'standardwebhooks';
import { z } from 'zod';
import { ALERT_SETTINGS, type Receiver, startReceiver } from '../harness/alerts.js';
import { usageEvent } from '../harness/events.js';
import { type MailServer, startMailServer } from '../harness/mail.js';
import { type Product, startProduct } from '../harness/product.js';
import type { HttpProcess, ServiceProcess } from '../harness/services.js';
import { until } from '../harness/waiting.js';

// A Redis of the file's own: each alerts service evaluates the alerts of all tests that share a Redis.
let servers: Servers;
let product: Product;
let query: HttpProcess;
let service: ServiceProcess;
let store: AlertStore;
let receiver: Receiver;
let mail: MailServer;
let account: string;
let admin: string;
let number = 0;

beforeAll(async () => {
  servers = await startServers({ shards: 0 });
  product = await startProduct({ redisUrl: servers.redis.url, prefix: 'bull' });
  mail = await startMailServer();
  const sender = { ALERT_SMTP_FROM: 'billing@example.com' };
  [query, service] = await Promise.all([
    product.startQuery(sender),
    product.startAlerts({ ...sender, ALERT_SMTP_URL: mail.url, API_PUBLIC_URL: 'https://billing.example.com' }),
    product.startIngest(),
  ]);
  store = new AlertStore(product.redis);
});
beforeEach(async () => {
  number += 1;
  account = `account-${number}`;
  admin = await product.key(account);
  receiver = await startReceiver();
});
afterEach(() => receiver.close());
afterAll(async () => {
  await product.close();
  await mail.close();
  await servers.stop();
});

const text = z.string();
const alertBody = z.object({ id: text, secret: text.default('') });
const delivery = z.object({ id: text, state: text, attempts: z.number(), lastOutcome: text.optional() });

async function ask(method: string, place: string, body?: unknown, of = { account, admin }): Promise<unknown> {
  const response = await fetch(`${query.url}/v0/accounts/${of.account}/alerts${place}`, {
    method,
    headers: { authorization: `Bearer ${of.admin}`, connection: 'close' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  expect(response.ok).toBe(true);
  return response.status === 204 ? undefined : response.json();
}

const create = async (settings: object, of = { account, admin }) =>
  alertBody.parse(await ask('POST', '', { ...ALERT_SETTINGS, url: receiver.url, ...settings }, of));
const deliveriesOf = async (id: string) => z.array(delivery).parse(await ask('GET', `/${id}/deliveries`));
const anotherAccount = async () => ({ account: `${account}-other`, admin: await product.key(`${account}-other`) });
const thresholds = () => receiver.received.map(({ body }) => body.data.threshold);
const now = () => new Date().toISOString();

it('each threshold that events cross sends one signed webhook with the exact value', async () => {
  const { id, secret } = await create({
    ...{ measure: 'usage', amount: '10', thresholds: [50, 80, 100] },
    filters: { billingDimension: ['sandbox_compute_runtime_gbs'], resourceName: ['builder'] },
  });
  const event = { accountId: account, timestamp: now() };
  await product.send(usageEvent(1, { ...event, usage: '4.999999999' }), usageEvent(2, { ...event, resourceName: 'x' }));
  await product.send(usageEvent(3, { ...event, usage: '3.000000002' }));
  await until('two thresholds have fired', async () => receiver.received.length >= 2);
  // A void takes nothing back.
  await product.send(
    usageEvent(1, { ...event, usage: 0, revision: 1, void: true }),
    usageEvent(4, { ...event, usage: '5.1' }),
  );
  await ask('PATCH', `/${id}`, { name: 'Usage', thresholds: [50, 80, 81, 100] });
  await until('the new threshold has fired', async () => receiver.received.length >= 3);

  expect(thresholds().sort()).toEqual([50, 80, 81]);
  for (const { headers, text } of receiver.received) {
    expect(new Webhook(secret).verify(text, headers)).toMatchObject({ type: 'usage.threshold_reached' });
  }
  const [first, , third] = receiver.received;
  expect(first?.text).toContain('"measure":"usage","amount":10,"threshold":');
  expect(first?.text).toContain('"value":8.000000001}}');
  expect(third?.text).toContain('"threshold":81,"value":8.100000002}}');
  const { startTime } = periodAt('month', Date.parse(event.timestamp));
  expect(first?.text).toContain(`"period":{"startTime":"${new Date(startTime).toISOString().replace('.000', '')}"`);
  expect(await ask('GET', `/${id}`)).toMatchObject({
    fired: [{ threshold: 50 }, { threshold: 80 }, { threshold: 81 }],
  });
  const states = async () => (await deliveriesOf(id)).map(({ state }) => state).join();
  await until('all are noted', async () => (await states()) === 'delivered,delivered,delivered');
});

it('a new alert fires for thresholds that are crossed already, and alerts of other accounts and workspaces do not', async () => {
  const event = { accountId: account, timestamp: now(), usage: 1_000_000, workspace: 'prod' };
  await product.send(usageEvent(10, event));
  await create({ amount: '20', thresholds: [50, 100], filters: { workspace: ['prod'] }, period: 'day' });
  await create({ amount: '1', filters: { workspace: ['dev'] } });
  const other = await anotherAccount();
  await create({ amount: '1' }, other);
  await until('a threshold has fired', async () => receiver.received.length > 0);
  expect(receiver.received.map(({ text }) => JSON.parse(text).data)).toMatchObject([
    { accountId: account, threshold: 50, value: 11.5 },
  ]);
});

it('a threshold reaches Slack, Teams and each address of an e-mail, and a test reaches them too', async () => {
  const url = `${receiver.url}/services/secret`;
  const definition = { amount: '10', thresholds: [50], name: 'Spend & more' };
  const alerts = [
    await create({ ...definition, format: 'slack', url }),
    await create({ ...definition, format: 'teams', url }),
    await create({ ...definition, url: undefined, to: ['a@example.com', 'b@example.com'] }),
  ];
  await product.send(usageEvent(20, { accountId: account, timestamp: now(), usage: 500_000 }));
  const arrived = (messages: number) => () =>
    receiver.received.length === messages && mail.received.length === messages && deliveredAll(alerts);
  await until('all have arrived', arrived(2));
  const texts = receiver.received.map(({ text }) => text);
  expect(texts).toContainEqual(expect.stringMatching(/^\{"text":"Spend &amp; more: 50% of \$10.00 reached\./));
  expect(texts).toContainEqual(expect.stringMatching(/^\{"type":"message","attachments":\[/));
  expect(mail.received.map(({ to }) => to).sort()).toEqual(['a@example.com', 'b@example.com']);
  for (const { text } of mail.received) {
    expect(text).toContain('Cost so far: $5.75\nThreshold: 50% of $10.00\n');
    expect(text).toContain(`https://billing.example.com/?account=${account}&from=`);
  }
  for (const { id } of alerts) await ask('POST', `/${id}/test`);
  await until('the tests have arrived', arrived(4));
  expect(service.log()).not.toMatch(/services\/secret|@example.com/);
});

const deliveredAll = async (alerts: readonly { id: string }[]) =>
  (await Promise.all(alerts.map(({ id }) => deliveriesOf(id)))).flat().every(({ state }) => state === 'delivered');

it('a webhook is signed with the new secret and with the one before it', async () => {
  const { id, secret } = await create({});
  const rotated = alertBody.parse(await ask('PATCH', `/${id}`, { rotateSecret: true })).secret;
  await ask('POST', `/${id}/test`);
  await until('the test has come', async () => receiver.received.length > 0);
  const [{ text = '', headers = {} } = {}] = receiver.received;
  for (const one of [secret, rotated])
    expect(new Webhook(one).verify(text, headers)).toMatchObject({ type: 'alert.test' });
  expect(() => new Webhook(`whsec_${'A'.repeat(43)}=`).verify(text, headers)).toThrow();
  expect(service.log()).not.toContain('whsec_');
});

it('a test webhook is sent once, and its outcome is shown', async () => {
  const { id } = await create({});
  receiver.respond = (response) => response.writeHead(500).end();
  await ask('POST', `/${id}/test`);
  await until('the test has failed', async () => (await deliveriesOf(id))[0]?.state === 'failed');
  expect(await deliveriesOf(id)).toMatchObject([{ attempts: 1, lastOutcome: '500' }]);
});

it('a webhook that is requested again during its last attempt does not fail, and is sent again', async () => {
  const { id } = await create({});
  receiver.respond = async (response, webhook) => {
    receiver.respond = (again) => again.writeHead(204).end();
    await ask('POST', `/${id}/deliveries/${webhook.id}/redeliver`);
    response.writeHead(500).end();
  };
  await ask('POST', `/${id}/test`);
  await until('it is delivered', async () => (await deliveriesOf(id))[0]?.state === 'delivered');
  await service.entry(({ event, alert }) => event === 'webhook_delivered' && alert === id);
  const attempts = service.entries().filter(({ alert }) => alert === id);
  expect(attempts).toMatchObject([{ event: 'webhook_failed', state: 'pending' }, { event: 'webhook_delivered' }]);
});

it('a crossing whose process died after marking it is sent, with one body and one id, until the receiver accepts it', async () => {
  let refusals = 2;
  receiver.respond = (response) => {
    response.writeHead(refusals > 0 ? 500 : 200).end();
    refusals -= 1;
  };
  const { id } = await create({});
  const alert = await store.find(id);
  if (!alert) throw new Error('no alert');
  const at = Date.now();
  const period = periodAt('month', at);
  const fired = { threshold: 50, value: '1', firedAt: new Date(at).toISOString() };
  const webhook = webhookPayload(alert, 'usage.threshold_reached', period, at, fired);
  await store.fire(alert, period.startTime, fired, webhook);
  await until('it is taken', async () => (await deliveriesOf(id))[0]?.state === 'delivered');
  const [{ id: deliveryId } = {}] = await deliveriesOf(id);
  expect(receiver.received.map((one) => [one.id, one.text])).toEqual(Array(3).fill([deliveryId, webhook]));
});
