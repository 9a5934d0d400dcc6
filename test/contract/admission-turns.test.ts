/** Who gets the next statement of an account whose statements are taken, and requests that wait for one together. */
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ClientGone, createRedis, type Lease, SharedLimits } from '@meterline/api';
import { Admission, type AdmissionLimits } from '@meterline/query';
import { createWarehouse } from '@meterline/warehouse';
import { testClickHouseUrl, testRedisUrl, uniquePrefix } from '../stack.js';
import { NO_LIMITS } from './fixture.js';

const ANN = { account: 'acme', caller: 'ann' };
const ALEX = { account: 'acme', caller: 'alex' };
const LEASE = { counts: false, leases: true };

const redis = createRedis(testRedisUrl());
/** No statement is sent. */
const warehouse = createWarehouse({
  url: testClickHouseUrl(),
  user: 'nobody',
  password: '',
  database: 'none',
  application: 'meterline-test',
});
beforeAll(() => redis.connect());
afterAll(async () => {
  redis.disconnect();
  await warehouse.close();
});

/** A process, and another one that has taken `taken` statements for Ann. */
async function scene(some: Partial<AdmissionLimits>, taken: number) {
  const limits = { ...NO_LIMITS, ...some };
  const prefix = uniquePrefix();
  const elsewhere = new SharedLimits(redis, prefix, limits);
  const leases: Lease[] = [];
  for (let n = 0; n < taken; n += 1) {
    const { lease } = await elsewhere.enter(ANN, LEASE);
    if (!lease) throw new Error('no lease');
    leases.push(lease);
  }
  const admission = new Admission({ limits, shared: new SharedLimits(redis, prefix, limits), warehouse });
  return {
    admission,
    endElsewhere: () => {
      for (const lease of leases) elsewhere.release(lease);
    },
    visits: (count: number) => Promise.all(Array.from({ length: count }, () => enter(admission))),
  };
}

async function enter(admission: Admission) {
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  return { response, visit: await admission.enter(ANN, response, false) };
}

it('a caller whose statements all run in other processes does not keep another of its account waiting', async () => {
  const { admission, endElsewhere } = await scene({ process: 1, account: 3, caller: 2 }, 2);
  const ann = admission.take(ANN, new AbortController().signal);
  // The only slot of the process is Ann's until Redis has said that she has no statement left.
  const [release, lease] = await admission.take(ALEX, AbortSignal.timeout(3_000));
  expect(lease).toMatchObject({ party: ALEX });
  release();
  admission.end(ALEX, lease, 0);
  endElsewhere();
  const [releaseHers, hers] = await ann;
  expect(hers).toMatchObject({ party: ANN });
  releaseHers();
  admission.end(ANN, hers, 0);
});

describe('requests of a caller with one aim', () => {
  it('wait as one, and one gets the turn', async () => {
    const { admission, endElsewhere, visits } = await scene({ caller: 1, maxWaitingOfAccount: 1 }, 1);
    const all = await visits(150);
    const turns = Promise.all(all.map(({ visit }) => visit.turnFor('aim')));
    expect(admission.waiting).toBe(1);
    endElsewhere();
    expect((await turns).filter((hasTurn) => hasTurn)).toHaveLength(1);
    expect([admission.waiting, admission.slots.inUse, admission.sharedTurns.size]).toEqual([0, 1, 0]);
    for (const { visit } of all) visit.leave();
    expect(admission.slots.inUse).toBe(0);
  });

  it('are each told when that one is refused', async () => {
    const { endElsewhere, visits } = await scene({ caller: 1, maxWaitMs: 300 }, 1);
    const all = await visits(3);
    const turns = await Promise.allSettled(all.map(({ visit }) => visit.turnFor('aim')));
    expect(turns).toMatchObject(all.map(() => ({ reason: { status: 429, code: 'too_many_statements' } })));
    const fields = all.map(({ response }) => response.getHeader('RateLimit'));
    expect(fields).toEqual(all.map(() => expect.stringMatching(/, "caller-statements";r=0$/)));
    endElsewhere();
  });

  it('are told when the client of that one goes, and the next waits for them', async () => {
    const { admission, endElsewhere, visits } = await scene({ caller: 1 }, 1);
    const all = await visits(3);
    const [first, ...others] = all.map(({ visit }) => visit.turnFor('aim'));
    all[0]?.response.emit('close');
    await expect(first).rejects.toThrow(ClientGone);
    expect(await Promise.all(others)).toEqual([false, false]);
    const again = all.slice(1).map(({ visit }) => visit.turnFor('aim'));
    endElsewhere();
    expect((await Promise.all(again)).sort()).toEqual([false, true]);
    for (const { visit } of all) visit.leave();
    expect(admission.slots.inUse).toBe(0);
  });

  it('that have their turn do not wait for one that has not', async () => {
    const { admission, visits } = await scene({ process: 1 }, 0);
    const [holder, waiter] = await visits(2);
    await holder?.visit.turn();
    const waiting = waiter?.visit.turnFor('aim');
    expect(await holder?.visit.turnFor('aim')).toBe(true);
    holder?.visit.leave();
    expect(await waiting).toBe(true);
    waiter?.visit.leave();
    expect(admission.slots.inUse).toBe(0);
  });
});
