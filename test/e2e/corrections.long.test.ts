/**
 * Corrections and mistakes of producers, from the queue to the API, in events and in sealed rollup rows. The oracle gives the
 * expected answers.
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { sealNext } from '@meterline/warehouse';
import { type Deployment, deploy } from '../oracle/deployment.js';
import { EXAMPLE_BOOK, Oracle, type OracleEvent, type OraclePriceBook } from '../oracle/model.js';
import type { Question } from '../oracle/questions.js';

let deployment: Deployment;
beforeAll(async () => {
  deployment = await deploy();
  await deployment.startWorker(EXAMPLE_BOOK);
  // Every event of these tests is late, so that its rollup rows must be recomputed.
  while (await sealNext(deployment.shards.all, Date.UTC(2026, 1, 1)));
});
afterAll(() => deployment.stop());

const HOUR = { startTime: '2026-01-05T10:00:00Z', endTime: '2026-01-05T11:00:00Z' };
const DAY = { startTime: '2026-01-05T00:00:00Z', endTime: '2026-01-06T00:00:00Z', resolution: 'daily' } as const;
const MILLISECOND = { startTime: '2026-01-05T10:15:00.5Z', endTime: '2026-01-05T10:15:00.501Z' };

/** Requests that show every field of an event, also for the millisecond of the default event alone. */
const QUESTIONS: readonly Question[] = [
  { about: 'metrics', query: { ...HOUR, groupBy: 'workspace,resource_name,billing_dimension' } },
  { about: 'metrics', query: { ...HOUR, groupBy: 'resource_type,resource_uuid' } },
  { about: 'metrics', query: HOUR },
  { about: 'metrics', query: { ...DAY, groupBy: 'workspace,resource_uuid' } },
  { about: 'metrics', query: { ...MILLISECOND, groupBy: 'billing_dimension' } },
  { about: 'resource types', query: HOUR },
  { about: 'resource types', query: MILLISECOND },
];

let accounts = 0;
function newAccount(): string {
  accounts += 1;
  return `account-${accounts}-${deployment.name}`;
}

/** 250 GB-seconds of a sandbox. */
function event(accountId: string, changes: Partial<OracleEvent> = {}): OracleEvent {
  return {
    eventId: '0190c5e4-7b1a-7def-8abc-0123456789ab',
    accountId,
    workspace: 'prod',
    resourceType: 'sandbox',
    resourceName: 'builder',
    resourceUuid: 'b-1',
    billingDimension: 'sandbox_compute_runtime_gbs',
    usage: 250,
    timestamp: '2026-01-05T10:15:00.5Z',
    ...changes,
  };
}

/** Sends jobs one after the other, each acknowledged before the next. */
async function send(...jobs: readonly (readonly OracleEvent[])[]): Promise<void> {
  for (const events of jobs) await deployment.deliver([{ events }]);
}

async function answers(accountId: string): Promise<string[][]> {
  const customer = await deployment.customer(accountId);
  const found = await Promise.all(QUESTIONS.map((question) => customer.ask(question)));
  for (const { fromRollups, fromEvents } of found) expect(fromRollups).toEqual(fromEvents);
  return found.map(({ fromRollups }) => fromRollups);
}

/** The answers if only these events had been sent. */
function asIfOnly(accountId: string, events: readonly OracleEvent[], book?: OraclePriceBook): string[][] {
  const oracle = new Oracle(book);
  for (const each of events) oracle.accept(each);
  return QUESTIONS.map(({ about, query }) =>
    about === 'metrics' ? oracle.pages(accountId, query) : [oracle.resourceTypes(accountId, query)],
  );
}

describe('a voided event', () => {
  const volume = {
    eventId: '0190c5e4-7b1a-7def-8abc-000000000001',
    resourceType: 'volume',
    resourceName: 'disk',
    billingDimension: 'volume_storage_gbs',
  };

  it('a voided event no longer counts in usage, cost, groups and resource types; other events stay', async () => {
    const account = newAccount();
    const stays = event(account);
    await send([stays, event(account, volume)]);
    expect(await answers(account)).toEqual(asIfOnly(account, [stays, event(account, volume)]));

    await send([event(account, { ...volume, revision: 1, void: true })]);
    expect(await answers(account)).toEqual(asIfOnly(account, [stays]));
    expect((await answers(account)).flat().join()).not.toContain('volume');
  });

  it('a voided event does not change the dimensions to group by: they are the same for every account', async () => {
    const account = newAccount();
    const customer = await deployment.customer(account);
    const before = await customer.groupByDimensions();
    await send([event(account)], [event(account, { revision: 1, void: true })]);
    expect(await customer.groupByDimensions()).toBe(before);
    expect(JSON.parse(before)).toEqual({
      values: ['workspace', 'resource_type', 'resource_name', 'resource_uuid', 'billing_dimension'],
    });
  });

  it('a voided event stays void when the event is sent again, and counts again with a higher revision', async () => {
    const account = newAccount();
    await send([event(account, { revision: 1, void: true })], [event(account)]);
    expect(await answers(account)).toEqual(asIfOnly(account, []));
    await send([event(account, { revision: 2 })]);
    expect(await answers(account)).toEqual(asIfOnly(account, [event(account)]));
  });
});

it.each<[string, Partial<OracleEvent>]>([
  ['with other usage', { usage: '0.1' }],
  ['in another millisecond', { timestamp: '2026-01-05T10:15:00.501Z' }],
  ['in the first millisecond of its hour', { timestamp: '2026-01-05T10:00:00Z' }],
  ['in the last millisecond of its hour', { timestamp: '2026-01-05T10:59:59.999999999Z' }],
  ['in another workspace', { workspace: 'dev' }],
  ['in another dimension', { billingDimension: 'sandbox_image_storage_gbs' }],
  ['with another resource', { resourceName: 'runner', resourceUuid: 'r-2' }],
  [
    'of another type',
    { resourceType: 'custom_domain', billingDimension: 'custom_domain_active_time_hours', usage: '12' },
  ],
])('a higher revision replaces the event, in either order of arrival, %s', async (_where, changes) => {
  const first = (account: string) => event(account);
  const revised = (account: string) => event(account, { ...changes, revision: 1 });
  const [revisedLater, revisedFirst, inOneJob] = [newAccount(), newAccount(), newAccount()];
  await deployment.deliver([
    first(revisedLater),
    revised(revisedFirst),
    { events: [first(inOneJob), revised(inOneJob)] },
  ]);
  await deployment.deliver([revised(revisedLater), first(revisedFirst)]);
  for (const account of [revisedLater, revisedFirst, inOneJob]) {
    expect(await answers(account)).toEqual(asIfOnly(account, [event(account, changes)]));
  }
});

it('a higher revision replaces the event, in either order of arrival, but not one in another hour, which is another event', async () => {
  const account = newAccount();
  const next = event(account, { timestamp: '2026-01-05T09:59:59.999Z', revision: 1 });
  await send([event(account)], [next]);
  const customer = await deployment.customer(account);
  const { fromRollups } = await customer.ask({
    about: 'metrics',
    query: { ...HOUR, startTime: '2026-01-05T09:00:00Z' },
  });
  expect(fromRollups[0]).toContain('"totalCost":0.00575}');
  expect(await answers(account)).toEqual(asIfOnly(account, [event(account), next]));
});

describe('under a newer price book', () => {
  const newer: OraclePriceBook = {
    ...EXAMPLE_BOOK,
    version: 1,
    prices: EXAMPLE_BOOK.prices.map((price) => ({ ...price, amount: `3${price.amount}` })),
  };
  afterAll(() => deployment.startWorker(EXAMPLE_BOOK));

  it('under a newer price book, the same event keeps its first price, a revision and a new event get the new one', async () => {
    const [resent, revised, late] = [newAccount(), newAccount(), newAccount()];
    await send([event(resent)], [event(revised)]);
    await deployment.startWorker(newer);
    await send([event(resent), event(resent)], [event(revised, { revision: 1 })], [event(late)]);

    expect(await answers(resent)).toEqual(asIfOnly(resent, [event(resent)]));
    expect(await answers(revised)).toEqual(asIfOnly(revised, [event(revised)], newer));
    expect(await answers(late)).toEqual(asIfOnly(late, [event(late)], newer));
    expect((await answers(resent))[2]?.[0]).toContain('"totalCost":0.002875}');
    expect((await answers(late))[2]?.[0]).toContain('"totalCost":7500.002875}');
  });

  it('under a newer price book, an event keeps the older price, also when it arrives later from a worker that was not restarted yet', async () => {
    const account = newAccount();
    await deployment.startWorker(newer);
    await send([event(account)]);
    await deployment.startWorker(EXAMPLE_BOOK);
    await send([event(account)]);
    expect(await answers(account)).toEqual(asIfOnly(account, [event(account)]));
  });

  it('under a newer price book, a contradicting payload of the same revision loses to the one that was priced before', async () => {
    const contradictions = [{ usage: '1' }, { usage: '2' }, { usage: '3' }, { void: true }].map((changes) => ({
      account: newAccount(),
      changes,
    }));
    await deployment.startWorker(EXAMPLE_BOOK);
    await deployment.deliver(contradictions.map(({ account }) => event(account)));
    await deployment.startWorker(newer);
    await deployment.deliver(contradictions.map(({ account, changes }) => event(account, changes)));
    for (const { account } of contradictions) {
      expect(await answers(account)).toEqual(asIfOnly(account, [event(account)]));
    }
  });
});

describe('three payloads that claim the same revision', () => {
  const payloads: readonly Partial<OracleEvent>[] = [
    {},
    { usage: '0.000000001', workspace: 'dev', timestamp: '2026-01-05T10:00:00Z' },
    {
      resourceType: 'volume',
      billingDimension: 'volume_storage_gbs',
      resourceName: 'disk',
      resourceUuid: 'd-1',
      usage: 2_628_000,
    },
  ];

  const claimed: [string, number, readonly Partial<OracleEvent>[]][] = [
    ['at first', 0, payloads],
    ['at revision 65535', 65_535, payloads],
    ['with a void among them', 1, [...payloads.slice(0, 2), { void: true }]],
  ];

  it.each(claimed)(
    'three payloads that claim the same revision %s have the same winner in every order of arrival',
    async (_when, revision, claims) => {
      const orders = permutations(claims);
      const sentIn = (account: string, order: readonly Partial<OracleEvent>[]) =>
        order.map((changes) => event(account, { ...changes, revision }));
      const inOneJob = orders.map((order) => ({ order, account: newAccount() }));
      const acrossJobs = orders.map((order) => ({ order, account: newAccount() }));
      const acrossRestarts = orders.map((order) => ({ order, account: newAccount() }));

      await deployment.deliver(inOneJob.map(({ account, order }) => ({ events: sentIn(account, order) })));
      for (const nth of claims.keys()) {
        await deployment.deliver(acrossJobs.map(({ account, order }) => sentIn(account, order)[nth]));
      }
      for (const nth of claims.keys()) {
        await deployment.startWorker(EXAMPLE_BOOK);
        await deployment.deliver(acrossRestarts.map(({ account, order }) => sentIn(account, order)[nth]));
      }

      const all = [...inOneJob, ...acrossJobs, ...acrossRestarts];
      const settled = await Promise.all(all.map(({ account }) => answers(account)));
      expect(settled).toEqual(all.map(() => settled[0]));
      // Exactly one of the payloads, not a mixture and not nothing.
      const possible = claims.map((changes) => asIfOnly('any', [event('any', changes)]));
      expect(possible).toContainEqual(settled[0]);
    },
  );

  it('three payloads that claim the same revision are replaced by a higher revision, also when they are sent again', async () => {
    const account = newAccount();
    const claims = payloads.map((changes) => event(account, { ...changes, revision: 1 }));
    const final = event(account, { usage: 7, revision: 2 });
    await send(claims, [final], claims);
    expect(await answers(account)).toEqual(asIfOnly(account, [final]));
  });
});

function permutations<T>(items: readonly T[]): T[][] {
  if (items.length === 0) return [[]];
  return items.flatMap((first, n) =>
    permutations(items.filter((_, index) => index !== n)).map((rest) => [first, ...rest]),
  );
}
