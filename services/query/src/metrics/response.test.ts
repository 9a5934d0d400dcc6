/** The JSON of responses, and the response cache. */

import { beforeEach, expect, it } from '@jest/globals';
import { ApiError, ClientGone } from '@meterline/api/http/errors';
import { formatScaled, isDecimalText } from '@meterline/catalog/plain';
import fc from 'fast-check';
import { type ExactJson, exactNumber, type RawJson, writeJson } from './response.js';
import { allowedAgeSeconds, type CachedResponse, type CacheResult, ResponseCache } from './response-cache.js';

function exact(text: string): RawJson {
  if (!isDecimalText(text)) throw new TypeError(text);
  return exactNumber(text);
}

it('writeJson writes whatever JSON.stringify would write, where there are no numbers', () => {
  const { tree } = fc.letrec<{ tree: ExactJson }>((tie) => ({
    tree: fc.oneof(
      { maxDepth: 4 },
      fc.string({ unit: 'binary' }),
      fc.boolean(),
      fc.array(tie('tree')),
      fc.dictionary(fc.string({ unit: 'binary' }), tie('tree')),
    ),
  }));
  fc.assert(fc.property(tree, (value) => expect(writeJson(value)).toBe(JSON.stringify(value))));
});

it('writeJson writes every scaled decimal as a JSON number that means the same', () => {
  fc.assert(
    fc.property(fc.bigInt(0n, 10n ** 30n), (scaled) => {
      const text = writeJson(exact(formatScaled(scaled, 12)));
      expect(Number.isNaN(JSON.parse(text))).toBe(false);
      const [integer = '', fraction = ''] = text.split('.');
      expect(BigInt(integer + fraction.padEnd(12, '0'))).toBe(scaled);
    }),
  );
});

const KB = 1024;

let now: number;
let results: CacheResult[];
let cache: ResponseCache;
beforeEach(() => {
  now = 5_000;
  results = [];
  cache = new ResponseCache(
    400 * KB,
    (result) => results.push(result),
    () => now,
  );
});

function responseOf(text: string, bytes = KB): CachedResponse {
  return { body: Buffer.alloc(bytes, text), etag: text };
}

/** A response that is ready when it is told to be. */
function pending() {
  let end: (response: CachedResponse) => void = () => undefined;
  let fail: (error: Error) => void = () => undefined;
  const response = new Promise<CachedResponse>((resolve, reject) => {
    [end, fail] = [resolve, reject];
  });
  return { work: () => response, end, fail };
}

async function etagOf(maxAge: number, text: string, { account = 'acme', key = 'key', bytes = KB } = {}) {
  const { response, ageSeconds } = await cache.get(account, key, maxAge, async () => responseOf(text, bytes));
  return [response.etag, ageSeconds];
}

it('a response is computed for each request that does not say how old it may be, and kept for those that do', async () => {
  expect(await etagOf(0, 'first')).toEqual(['first', undefined]);
  now += 2_000;
  expect(await etagOf(0, 'second')).toEqual(['second', undefined]);
  now += 10_000;
  expect(await etagOf(10, 'third')).toEqual(['second', 10]);
  now += 1;
  expect(await etagOf(10, 'fourth')).toEqual(['fourth', undefined]);
  expect(results).toEqual(['computed', 'computed', 'hit', 'computed']);
});

it('a cached response is as old as the beginning of its computation', async () => {
  const slow = pending();
  const got = cache.get('acme', 'key', 0, slow.work);
  now += 8_000;
  slow.end(responseOf('slow'));
  await got;
  expect(await etagOf(7, 'fresh')).toEqual(['fresh', undefined]);
});

it('a response does not replace one whose computation began later', async () => {
  const slow = pending();
  const got = cache.get('acme', 'key', 0, slow.work);
  now += 1;
  await etagOf(0, 'later');
  slow.end(responseOf('slow'));
  expect((await got).response.etag).toBe('slow');
  expect(await etagOf(10, 'none')).toEqual(['later', 0]);
});

it('a response that is being computed is shared by the requests that allow its age', async () => {
  const first = pending();
  const got = cache.get('acme', 'key', 10, first.work);
  now += 5_000;
  const shared = etagOf(5, 'not needed');
  expect(await etagOf(4, 'younger')).toEqual(['younger', undefined]);
  expect(await etagOf(0, 'exact')).toEqual(['exact', undefined]);
  first.end(responseOf('first'));
  expect([(await got).response.etag, await shared]).toEqual(['first', ['first', 5]]);
});

it('a response is computed once more, for all that wait, when the client goes that it was computed for', async () => {
  const gone = pending();
  const first = cache.get('acme', 'key', 10, gone.work);
  const others = Array.from({ length: 20 }, (_, n) => etagOf(10, `${n}`));
  gone.fail(new ClientGone());
  await expect(first).rejects.toThrow(ClientGone);
  expect(new Set((await Promise.all(others)).map(([etag]) => etag))).toEqual(new Set(['0']));
});

it('each waiting request computes its own response if the first was rate-limited, and all fail after any other error', async () => {
  const refused = pending();
  const failing = pending();
  const first = [
    cache.get('acme', 'refused', 10, refused.work),
    cache.get('acme', 'failing', 10, failing.work),
  ] as const;
  const others = [etagOf(10, 'other', { key: 'refused' }), etagOf(10, 'other', { key: 'failing' })] as const;
  refused.fail(new ApiError(429, 'too_many_statements', 'refused'));
  failing.fail(new ApiError(503, 'query_limit_exceeded', 'too large'));
  await expect(first[0]).rejects.toThrow('refused');
  await expect(first[1]).rejects.toThrow('too large');
  expect(await others[0]).toEqual(['other', undefined]);
  await expect(others[1]).rejects.toThrow('too large');
});

it('the memory of responses is bounded: the oldest responses of an account with more than a quarter go, and those of others stay', async () => {
  await etagOf(0, 'quiet', { account: 'globex', key: 'quiet' });
  for (let n = 0; n < 50; n += 1) await etagOf(0, `${n}`, { key: `${n}`, bytes: 10 * KB });
  expect(cache.bytes).toBeLessThan(102 * KB);
  expect(await etagOf(10, 'computed', { account: 'globex', key: 'quiet' })).toEqual(['quiet', 0]);
  expect(await etagOf(10, 'computed', { key: '49' })).toEqual(['49', 0]);
  expect(await etagOf(10, 'computed', { key: '0' })).toEqual(['computed', undefined]);
  await etagOf(0, 'too large', { key: 'large', bytes: 101 * KB });
  expect(await etagOf(10, 'computed', { key: 'large', bytes: 1 })).toEqual(['computed', undefined]);
  for (let n = 0; n < 50; n += 1) {
    await etagOf(0, 'other', { account: `${n}`, key: `other ${n}`, bytes: 90 * KB });
    expect(cache.bytes).toBeLessThanOrEqual(400 * KB);
  }
});

it('the memory of responses holds nothing where it has no bytes', async () => {
  cache = new ResponseCache(0);
  await etagOf(0, 'first');
  expect(await etagOf(300, 'second')).toEqual(['second', undefined]);
  expect(cache.bytes).toBe(0);
});

it.each([
  [undefined, 0],
  ['', 0],
  ['max-age=15', 15],
  ['Max-Age="15"', 15],
  ['no-transform, max-age=300', 300],
  ['max-age=301', 300],
  ['max-age=99999999999999999999', 300],
  ['max-age=0', 0],
  ['max-age', 0],
  ['max-age=-1', 0],
  ['max-age=1.5', 0],
  ['max-age=15, no-cache', 0],
  ['no-store, max-age=15', 0],
  ['max-stale=15', 0],
])('Cache-Control: %s allows a response to be %i seconds old', (header, seconds) => {
  expect(allowedAgeSeconds(header)).toBe(seconds);
});
