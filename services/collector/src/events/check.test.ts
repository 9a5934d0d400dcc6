import { expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK } from '@meterline/catalog';
import { checkEvents } from './check.js';
import { readEvents } from './formats.js';

it('a body whose events have 100,000 different names lets other requests go on while it is read', async () => {
  const events = Array.from({ length: 5_000 }, (_, n) =>
    Object.fromEntries(Array.from({ length: 20 }, (_, member) => [`name-${n}-${member}`, 0])),
  );
  const body = Buffer.from(JSON.stringify(events));
  let turns = 0;
  const others = setInterval(() => {
    turns += 1;
  });
  const rules = { account: 'acme', book: DEFAULT_PRICE_BOOK, now: Date.now() };
  const { accepted, results } = await checkEvents(readEvents(body, 'json', 'acme', {}), rules);
  clearInterval(others);
  expect([accepted.length, results.length]).toEqual([0, 5_000]);
  expect(turns).toBeGreaterThan(20);
});
