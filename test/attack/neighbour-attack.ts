/** Issue: one key starves every tenant. Also test/contract/admission.test.ts; the figures are in test/bench/neighbours.ts. */
import { connect, type Socket } from 'node:net';
import { countHeavyStatements, fillUsage } from '../many-groups.js';
import type { Attack } from './attack.js';
import { HttpClient } from './http-client.js';
import { MemoryWatch } from './memory.js';
import { mustBecome, PATIENCE_MS } from './waiting.js';

const GREEDY = 'greedy';
const POLITE = 'polite';
const ROUNDS = 10;
const SOCKETS = 40;
/** The default of QUERY_CALLER_STATEMENTS. */
const MOST_AT_ONCE = 2;
const MEMORY_BOUND_MIB = 300;
const WINDOW = 'startTime=2025-10-01T00:00:00Z&endTime=2025-12-01T00:00:00Z&resolution=daily';

export const neighbourAttack: Attack = {
  name: 'neighbour',
  what: 'heavy questions on sockets that close at once, beside a client of another account',
  run: async ({ site, findings }) => {
    const usage = { start: Date.UTC(2025, 9, 1) / 1000, days: 61 };
    await fillUsage(site.warehouse, { ...usage, account: GREEDY, groups: 60_000, events: 180_000 });
    await fillUsage(site.warehouse, { ...usage, account: POLITE, groups: 100, events: 1_000 });
    // Answers that are kept are not heavy.
    const query = await site.startQuery({ ANSWER_CACHE_BYTES: '0' });
    const client = new HttpClient(query.url, { connections: 1, patienceMs: PATIENCE_MS });
    const [greedy, polite] = await Promise.all([site.key(GREEDY), site.key(POLITE)]);
    const memory = new MemoryWatch(query.pid);
    let atOnce = 0;
    let isOver = false;
    const watch = async () => {
      while (!isOver) atOnce = Math.max(atOnce, await countHeavyStatements(site.warehouse));
    };
    const storm = async () => {
      for (let round = 0; round < ROUNDS; round += 1) {
        const heavy = `/v0/accounts/${GREEDY}/metrics?${WINDOW}&groupBy=resource_uuid,resource_name,billing_dimension`;
        const sockets = await Promise.all(Array.from({ length: SOCKETS }, () => askOnly(query.url, heavy, greedy)));
        // Half of them close before their statements begin, half while those run or wait.
        for (const socket of sockets.splice(SOCKETS / 2)) socket.destroy();
        const target = `/v0/accounts/${POLITE}/metrics?${WINDOW}&groupBy=resource_name`;
        const headers = { authorization: `Bearer ${polite}` };
        const { status, text } = await client.send({ method: 'GET', target, headers });
        if (status !== 200) findings.add(`the polite client got ${status}`, text);
        for (const socket of sockets) socket.destroy();
      }
      isOver = true;
    };
    try {
      await Promise.all([storm(), watch()]);
      await mustBecome('every statement of the clients that have gone has ended', findings, async () => {
        return (await countHeavyStatements(site.warehouse)) === 0;
      });
      if (atOnce === 0) findings.add('no heavy statement has run');
      if (atOnce > MOST_AT_ONCE) findings.add(`${atOnce} statements of one caller at once`);
      return {
        sent: `${ROUNDS * SOCKETS} heavy questions`,
        stood: `at most ${atOnce} at once, ${ROUNDS} answers to the neighbour; ${memory.judged(MEMORY_BOUND_MIB, findings)}`,
      };
    } finally {
      isOver = true;
      client.close();
      await query.kill();
    }
  },
};

/** Resolves when the request has left. */
function askOnly(url: string, target: string, key: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.once('error', reject);
    const request = `GET ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`;
    socket.write(request, () => resolve(socket.off('error', reject).on('error', () => undefined)));
  });
}
