/**
 * Sends the product what no honest client would. `npm run test:fuzz` sends more: FUZZ_REQUESTS, FUZZ_EVENTS; FUZZ_SEED repeats a run.
 * The rights of each server user are tested in test/e2e/redis-users and clickhouse-users.
 */
import { afterAll, beforeAll, describe, it, jest } from '@jest/globals';
import { type Product, startProduct } from '../harness/product.js';
import { fuzzEvents } from './events.js';
import { fuzzJobs } from './jobs.js';
import { fuzzBytes, fuzzRequests } from './requests.js';
import { SEED } from './run.js';

jest.setTimeout(2 * 3_600_000);

const REQUESTS = Number(process.env.FUZZ_REQUESTS ?? 6_000);
const EVENTS = Number(process.env.FUZZ_EVENTS ?? 6_000);

describe(`the product under fuzz, seed ${SEED}`, () => {
  let product: Product;
  beforeAll(async () => {
    product = await startProduct();
  });
  afterAll(() => product.close());

  it('the API answers each hostile request as the OpenAPI document says, and shows nothing to who may not see it', () =>
    fuzzRequests(product, REQUESTS));

  it('the API stands bytes that are nearly HTTP', () => fuzzBytes(product, Math.ceil(REQUESTS / 10)));

  it('a worker stores each valid event of hostile jobs once, and keeps every other with its reason', () =>
    fuzzJobs(product, EVENTS));

  it('the collector judges hostile bodies as the model does, and enqueues what it accepts once', () =>
    fuzzEvents(product, EVENTS));
});
