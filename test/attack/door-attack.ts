/** Issue: bounded memory of the collector whatever its clients do. The short form is test/collector/limits.test.ts. */
import { connect, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import type { Attack } from './attack.js';
import { HttpClient } from './http-client.js';
import { MemoryWatch } from './memory.js';
import { mustBecome, PATIENCE_MS } from './waiting.js';

const MiB = 1024 * 1024;
const SLOW = 200;
const PARALLEL = 40;
const ROUNDS = 5;
/** COLLECTOR_MAX_BYTES, what is decoded and parsed at a time, and what V8 has not collected yet. */
const MEMORY_BOUND_MIB = 400;
const ACCEPTED = 202;
/** Refused for what it is, or for how much of it there is. */
const REFUSED = [400, 413, 429, 503];

/** A block of 64 KiB of one byte, repeated. Source: RFC 8878, section 3.1.1.2.2: a block of run length, type 1. */
function zstdBomb(blocks: number): Buffer {
  const size = 64 * 1024;
  const block = (isLast: boolean) => {
    const header = Buffer.alloc(3);
    header.writeUIntLE((size << 3) | (1 << 1) | (isLast ? 1 : 0), 0, 3);
    return Buffer.concat([header, Buffer.from(' ')]);
  };
  // No size of the content, and a window of 128 MiB.
  const head = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 17 << 3]);
  return Buffer.concat([head, ...Array.from({ length: blocks }, (_, index) => block(index === blocks - 1))]);
}

const EVENT = {
  workspace: 'production',
  resourceType: 'agent',
  resourceName: 'support',
  billingDimension: 'agent_compute_runtime_gbs',
  usage: 1,
  timestamp: '2025-10-02T09:00:00Z',
};

export const doorAttack: Attack = {
  name: 'door',
  what: `${SLOW} senders of a byte now and then, bombs of gzip and zstd, 5 MiB of brackets, clients that go, to the collector`,
  run: async ({ site, random, findings }) => {
    const collector = await site.startCollector({ QUEUE_PREFIX: 'attack-door' });
    const [hostile, other] = await Promise.all([site.key('hostile', 'emitter'), site.key('peaceful', 'emitter')]);
    const client = new HttpClient(collector.url, { connections: PARALLEL, patienceMs: PATIENCE_MS });
    const memory = new MemoryWatch(collector.pid);
    const post = (account: string, key: string, body: Buffer, encoding?: string) =>
      client.send({
        method: 'POST',
        target: `/v0/accounts/${account}/events`,
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          ...(encoding !== undefined && { 'content-encoding': encoding }),
        },
        body,
      });
    const sockets: Socket[] = [];
    const begin = (length: number) => {
      const socket = connect(Number(new URL(collector.url).port), '127.0.0.1').on('error', () => undefined);
      const head = `POST /v0/accounts/hostile/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${hostile}\r\n`;
      socket.write(`${head}Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`);
      sockets.push(socket);
      return socket;
    };
    const bombs: readonly (readonly [Buffer, string?])[] = [
      [gzipSync(Buffer.alloc(256 * MiB, ' ')), 'gzip'],
      [zstdBomb(4_096), 'zstd'],
      [Buffer.alloc(5 * MiB, '[')],
      [Buffer.from(`[{"workspace":${'['.repeat(120_000)}${']'.repeat(120_000)}}]`)],
      [Buffer.from(`[${'{},'.repeat(4_999)}{}]`)],
      [Buffer.from(JSON.stringify({ ['x'.repeat(4 * MiB)]: 1 }))],
    ];
    const eventOf = () => Buffer.from(JSON.stringify({ ...EVENT, eventId: random.uuid() }));
    let answeredMeanwhile = 0;
    try {
      const slow = Array.from({ length: SLOW }, () => begin(5 * MiB));
      for (let round = 0; round < ROUNDS; round += 1) {
        for (const socket of slow) socket.write('[');
        const full = Buffer.from(
          JSON.stringify(Array.from({ length: 2_000 }, () => ({ ...EVENT, eventId: random.uuid() }))),
        );
        for (let n = 0; n < 20; n += 1) begin(full.length).end(full).destroySoon();
        const attacks = Array.from({ length: PARALLEL }, async () => {
          const { status } = await post('hostile', hostile, ...random.pick(bombs));
          if (!REFUSED.includes(status)) findings.add(`a bomb got ${status}`);
        });
        const peaceful = async () => {
          const { status, text } = await post('peaceful', other, eventOf());
          if (status === ACCEPTED) answeredMeanwhile += 1;
          else findings.add(`another account got ${status}`, text);
        };
        await Promise.all([...attacks, peaceful(), peaceful()]);
      }
      for (const socket of sockets) socket.destroy();
      await mustBecome('the account may send again when its clients have gone', findings, async () => {
        return (await post('hostile', hostile, eventOf())).status === ACCEPTED;
      });
      return {
        sent: `${SLOW} slow connections, ${ROUNDS * PARALLEL} bombs`,
        stood: `${answeredMeanwhile} requests of another account accepted; ${memory.judged(MEMORY_BOUND_MIB, findings)}`,
      };
    } finally {
      for (const socket of sockets) socket.destroy();
      client.close();
      await collector.kill();
    }
  },
};
