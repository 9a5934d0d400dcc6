/**
 * The disk of both servers is full. The embedded ClickHouse would not notice that a write fails, so it ends itself before
 * (docs/decisions/0026); the last bytes are taken when it has.
 */
import { FREE_SPACE } from '@meterline/local-stack';
import type { Fault } from './fault.js';
import { fillDisk, freeDisk } from './small-disk.js';
import { holdsWithin, pause } from './waiting.js';

const MEBIBYTE = 1024 * 1024;
const REFILL_MS = 100;
const ENDED_WITHIN_MS = 60_000;
const UP_AGAIN_WITHIN_MS = 60_000;

export const diskFull: Fault = {
  name: 'disk-full',
  injects:
    'the disk of ClickHouse and Redis fills, in the end to the last byte; later there is space, and what has ended is started again',
  workers: 2,
  proxied: 'nothing',
  weight: 5,
  redis: 'server',
  needsSmallDisk: true,
  strike: async ({ site, random, brief, signal, complain }) => {
    await fillDisk(site.directory, FREE_SPACE.endsBelow + random.integer(1, 100) * MEBIBYTE);
    await pause(random.integer(0, 2_000), signal);
    let hasEnded = false;
    void site.clickhouse.running.exited.then(() => {
      hasEnded = true;
    });
    // Again and again, because a server that deletes files makes room.
    const isEnded = await holdsWithin(ENDED_WITHIN_MS, signal, async () => {
      await fillDisk(site.directory, FREE_SPACE.endsBelow - MEBIBYTE);
      return hasEnded;
    });
    if (!isEnded) complain('ClickHouse did not end itself on a disk that was nearly full');
    const until = Date.now() + (brief ? 2_000 : random.integer(1_000, 10_000));
    try {
      while (Date.now() < until) {
        await fillDisk(site.directory);
        await pause(REFILL_MS, signal);
      }
    } finally {
      await freeDisk(site.directory);
    }
    // Redis ends itself when it cannot write its append-only file, rather than acknowledge what it may lose.
    const isUp = await holdsWithin(UP_AGAIN_WITHIN_MS, signal, () => site.restartEndedServers());
    if (!isUp) complain('the servers did not come back when there was space again');
  },
};
