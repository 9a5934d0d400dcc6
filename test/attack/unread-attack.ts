/** Issue: unread answers stay in memory. Also packages/api/src/http/unread-answers.test.ts. */
import { connect, type Socket } from 'node:net';
import { NO_LIMITS } from '../services.js';
import type { Attack } from './attack.js';
import { HttpClient } from './http-client.js';
import { largeAnswer } from './large-answer.js';
import { MemoryWatch } from './memory.js';
import { mustBecome, PATIENCE_MS } from './waiting.js';

const ACCOUNT = 'unread';
const SOCKETS = 100;
const QUESTIONS_EACH = 3;
const MEMORY_BOUND_MIB = 400;
const SMALL = 'startTime=2025-10-01T00:00:00Z&endTime=2025-10-02T00:00:00Z';

export const unreadAttack: Attack = {
  name: 'unread',
  what: 'large answers that nobody reads, on sockets that stay open',
  run: async ({ site, findings }) => {
    const path = await largeAnswer(site, ACCOUNT);
    const query = await site.startQuery(NO_LIMITS);
    const [greedy, other] = await Promise.all([site.key(ACCOUNT), site.key('other')]);
    const client = new HttpClient(query.url, { connections: 1, patienceMs: PATIENCE_MS });
    const memory = new MemoryWatch(query.pid);
    const sockets: Socket[] = [];
    const answered = () =>
      query.entries().filter((entry) => entry['path'] === path.split('?')[0] && entry['status'] !== undefined);
    try {
      for (let n = 0; n < SOCKETS; n += 1) {
        const socket = connect(Number(new URL(query.url).port), '127.0.0.1').on('error', () => undefined);
        const request = `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${greedy}\r\n\r\n`;
        socket.write(request.repeat(QUESTIONS_EACH));
        sockets.push(socket);
      }
      // While they fill, and after: the other caller is answered.
      for (let n = 0; n < 20; n += 1) {
        const target = `/v0/accounts/other/metrics?${SMALL}`;
        const headers = { authorization: `Bearer ${other}` };
        const { status, text } = await client.send({ method: 'GET', target, headers });
        if (status !== 200) findings.add(`the other caller got ${status}`, text);
      }
      const report = memory.judged(MEMORY_BOUND_MIB, findings);
      for (const socket of sockets) socket.destroy();
      await mustBecome('requests are over when their clients have gone', findings, async () => {
        return answered().length >= SOCKETS;
      });
      return {
        sent: `${SOCKETS * QUESTIONS_EACH} questions, no byte read`,
        stood: `20 answers to another caller; ${report}`,
      };
    } finally {
      for (const socket of sockets) socket.destroy();
      client.close();
      await query.kill();
    }
  },
};
