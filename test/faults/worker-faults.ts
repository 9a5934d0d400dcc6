/** Ingest workers that are killed, or frozen for a long time. */
import type { Fault, Scene } from './fault.js';
import { holdsWithin, pause } from './waiting.js';

/** A worker holds a job's lock for 15 s without renewing it. */
const LONGER_THAN_THE_LOCK_MS = { min: 15_500, max: 24_000 };
const BUSY_WITHIN_MS = 60_000;

export const workerKilled: Fault = {
  name: 'worker-killed',
  injects: '`kill -9` of the only worker, one to three times, restarted after a moment',
  workers: 1,
  proxied: 'nothing',
  weight: 14,
  strike: killAndRestart,
};

export const workerOfTwoKilled: Fault = {
  name: 'worker-of-two-killed',
  injects: '`kill -9` of one of two workers, or of both at once, one to three times, restarted after a moment',
  workers: 2,
  proxied: 'nothing',
  weight: 14,
  strike: killAndRestart,
};

export const workerFrozen: Fault = {
  name: 'worker-frozen',
  injects: 'SIGSTOP of one of two workers for longer than its locks last, then SIGCONT',
  workers: 2,
  proxied: 'nothing',
  weight: 10,
  strike: freeze,
};

async function killAndRestart({ workers, random, signal }: Scene): Promise<void> {
  for (let times = random.integer(1, 3); times > 0; times -= 1) {
    const victims = random.chance(0.3) ? workers.running : [random.pick(workers.running)];
    await workers.kill(victims);
    await pause(random.integer(50, 1_500), signal);
    await workers.start(victims.length);
    await pause(random.integer(0, 600), signal);
  }
}

async function freeze({ workers, random, brief, signal, isBusy, complain }: Scene): Promise<void> {
  const victim = random.pick(workers.running);
  if (!(await holdsWithin(BUSY_WITHIN_MS, signal, isBusy))) complain('no job was in work when a worker was frozen');
  const { min, max } = LONGER_THAN_THE_LOCK_MS;
  process.kill(victim.pid, 'SIGSTOP');
  try {
    await pause(brief ? min : random.integer(min, max), signal);
  } finally {
    process.kill(victim.pid, 'SIGCONT');
  }
}
