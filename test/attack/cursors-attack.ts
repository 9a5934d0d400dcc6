/** Issue: a cursor of an older release is a 500. Also test/contract/earlier-releases.test.ts. */
import { createHmac } from 'node:crypto';
import { z } from 'zod';
import type { Attack } from './attack.js';
import { ACCOUNT } from './callers.js';
import { HOSTILE_TEXTS } from './hostile-text.js';
import { HttpClient } from './http-client.js';
import { USAGE } from './seed-usage.js';
import { CURSOR_SECRET } from './site.js';
import { PATIENCE_MS } from './waiting.js';

const QUESTION = 'startTime=2025-10-01T00:00:00Z&endTime=2025-10-02T00:00:00Z&groupBy=resource_name&limit=1';
const CURSORS = 500;
/** What earlier releases have signed, and what none has. */
const POSITIONS: readonly unknown[] = [
  { resultId: '6d87e354-d9ce-433a-b197-660610720aea', storedAt: 0, after: 1 },
  { cost: '0.01173', values: ['box-20'] },
  { offset: 10 },
  null,
  [],
  '',
  0,
  { after: -1 },
  { after: 1e300 },
  { __proto__: null },
];
const REFUSALS = ['invalid_cursor', 'cursor_expired'];

const contentSchema = z.record(z.string(), z.unknown());
const pageSchema = z.object({ meta: z.object({ nextCursor: z.string() }) });
const errorSchema = z.object({ error: z.string() });

export const cursorsAttack: Attack = {
  name: 'cursors',
  what: 'cursors that bear the right signature and another content, as other releases write them',
  run: async ({ site, random, findings }) => {
    await site.store(USAGE);
    const query = await site.startQuery({
      QUERY_CALLER_RATE: '100000',
      QUERY_CALLER_BURST: '100000',
      QUERY_ACCOUNT_BURST: '100000',
    });
    const client = new HttpClient(query.url, { connections: 4, patienceMs: PATIENCE_MS });
    const headers = { authorization: `Bearer ${await site.key(ACCOUNT)}` };
    const ask = (cursor: string) =>
      client.send({
        method: 'GET',
        target: `/v0/accounts/${ACCOUNT}/metrics?${QUESTION}&cursor=${encodeURIComponent(cursor)}`,
        headers,
      });
    try {
      const first = pageSchema.parse(JSON.parse((await ask('')).text)).meta.nextCursor;
      const own = contentSchema.parse(JSON.parse(Buffer.from(first.split('.')[0] ?? '', 'base64url').toString()));
      const position = contentSchema.parse(own['position']);
      const mutations = [
        () => ({ ...own, position: random.pick(POSITIONS) }),
        () => ({ ...own, position: { ...position, [random.pick(Object.keys(position))]: random.pick(POSITIONS) } }),
        () => ({ ...own, position: { ...position, [random.pick(Object.keys(position))]: random.pick(HOSTILE_TEXTS) } }),
        () => ({ ...own, [random.pick(Object.keys(own))]: random.pick(POSITIONS) }),
        () => random.pick(POSITIONS),
        () => ({ ...own, position: undefined }),
      ];
      for (let n = 0; n < CURSORS; n += 1) {
        const content = JSON.stringify(random.pick(mutations)());
        const { status, text } = await ask(signed(content));
        const error = status === 400 ? errorSchema.safeParse(JSON.parse(text)).data?.error : undefined;
        const isRefused = error !== undefined && REFUSALS.includes(error);
        if (!isRefused && status !== 200) findings.add(`a cursor is ${status}`, `${content}: ${text.slice(0, 300)}`);
      }
      return { sent: `${CURSORS} cursors`, stood: 'each is 400, or an answer' };
    } finally {
      client.close();
      await query.kill();
    }
  },
};

function signed(content: string): string {
  const text = Buffer.from(content).toString('base64url');
  return `${text}.${createHmac('sha256', CURSOR_SECRET).update(text).digest('base64url')}`;
}
