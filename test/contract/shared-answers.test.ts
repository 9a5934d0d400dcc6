/** Questions that wait for the answer to another, when that one comes to nothing. */
import { EventEmitter, once } from 'node:events';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Stamps } from '@meterline/access';
import { createRedis, SharedLimits } from '@meterline/api';
import { Admission, KeptAnswers } from '@meterline/query';
import { createWarehouse, type Scope, type Warehouse } from '@meterline/warehouse';
import { createTestDatabase, type TestDatabase, testRedisUrl, uniquePrefix } from '../stack.js';
import { bearer, DAY, event, metricsBody, metricsPath, NO_LIMITS, startApi, type TestApi } from './fixture.js';

/** More than may wait for a turn. */
const QUESTIONS = 150;
const LIMITS = { ...NO_LIMITS, maxWaitingOfAccount: 100 };

class WatchedAnswers extends KeptAnswers {
  readonly events = new EventEmitter();
  joined = 0;

  override join(question: string, stamps: Stamps) {
    this.joined += 1;
    this.events.emit('join');
    return super.join(question, stamps);
  }
}

/** A kept answer that cannot be read any more. */
class BrokenAnswers extends KeptAnswers {
  override find() {
    return { body: Buffer.from('no gzip'), isCompressed: true, length: 7, etag: 'W/"broken"' };
  }
}

const redis = createRedis(testRedisUrl());
beforeAll(() => redis.connect());
afterAll(() => redis.disconnect());

let database: TestDatabase;
let warehouse: Warehouse;
let statements: string[];
let api: TestApi;
beforeEach(async () => {
  database = await createTestDatabase();
  statements = [];
  const observe = (name: string) => {
    statements.push(name);
    return () => undefined;
  };
  warehouse = createWarehouse({ ...database.options, observe });
});
afterEach(async () => {
  await api.stop();
  await warehouse.close();
  await database.drop();
});

/** The first statement of metrics is sent only when its client has gone. */
function holdingTheFirst(inner: Warehouse, onHeld: () => void): Warehouse {
  let isFirst = true;
  const of = (warehouse: Warehouse, signal: Scope['signal']): Warehouse => ({
    read: async (statement, row) => {
      if (statement.name === 'read_metrics' && isFirst && signal) {
        isFirst = false;
        onHeld();
        if (!signal.aborted) await once(signal, 'abort');
      }
      return warehouse.read(statement, row);
    },
    run: (statement, body) => warehouse.run(statement, body),
    within: (scope) => of(warehouse.within(scope), scope.signal),
    ping: () => warehouse.ping(),
    close: () => warehouse.close(),
  });
  return of(inner, undefined);
}

describe('an answer that others wait for', () => {
  it('is computed once more, for all of them, when the client goes that it is computed for', async () => {
    const answers = new WatchedAnswers(1_000_000);
    const held = new EventEmitter();
    const isHeld = once(held, 'held');
    const holding = holdingTheFirst(warehouse, () => held.emit('held'));
    const shared = new SharedLimits(redis, uniquePrefix(), LIMITS);
    const admission = new Admission({ limits: LIMITS, shared, warehouse: holding });
    api = await startApi({ warehouse: holding, answers, admission });
    await api.seed([event({ accountId: 'acme' })]);
    const key = await api.key('acme');
    const client = new AbortController();
    const gone = fetch(`${api.url}${metricsPath('acme', DAY)}`, { ...bearer(key), signal: client.signal });
    await isHeld;
    const others = Array.from({ length: QUESTIONS }, () => api.request(metricsPath('acme', DAY), bearer(key)));
    while (answers.joined < QUESTIONS) await once(answers.events, 'join');
    client.abort();
    await expect(gone).rejects.toThrow();
    const costs = (await Promise.all(others)).map(({ body }) => metricsBody.parse(body).summary.totalCost);
    expect(costs).toEqual(Array.from({ length: QUESTIONS }, () => 1));
    // That of the client that has gone was not sent.
    expect(statements.filter((name) => name === 'read_metrics')).toHaveLength(1);
  });
});

describe('an answer that cannot be sent', () => {
  it('is an error that no cache takes for it', async () => {
    api = await startApi({ warehouse, answers: new BrokenAnswers(1_000_000) });
    const init = { headers: { ...bearer(await api.key('acme')).headers, 'accept-encoding': 'identity' } };
    const { status, headers } = await api.request(metricsPath('acme', DAY), init);
    expect([status, headers.get('etag'), headers.get('cache-control')]).toEqual([500, null, 'private, no-store']);
  });
});
