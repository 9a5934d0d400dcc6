/** Ingest processes that seal, as they do in production but more often. */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { readWatermarks } from '@meterline/warehouse';
import { runCommand } from '../cli/run-command.js';
import { killServices, type LogEntry, startIngest } from '../services.js';
import { execute } from '../stack.js';
import { drained, enqueue, openPipeline, type Pipeline, until } from './pipeline.js';

jest.setTimeout(400_000);

let pipeline: Pipeline;
beforeEach(async () => {
  pipeline = await openPipeline();
});
afterEach(async () => {
  await killServices();
  await pipeline.close();
});

const sealing = () => ({ ...pipeline.env, SEAL_EVERY_MS: '200' });
const isDailySeal = ({ event, grain }: LogEntry) => event === 'sealed' && grain === 'daily';
/** Names a step, the same for every process that may have run it. */
const stepOf = ({ shard, grain, from, to }: LogEntry) => `${shard} ${grain} ${from} ${to}`;

async function audit() {
  const { REDIS_URL: _redis, ...env } = pipeline.env;
  return runCommand(['audit'], { env });
}

describe('sealing', () => {
  it('seals the events that were there before it started, and late ones', async () => {
    const before = await startIngest(pipeline.env);
    await enqueue(pipeline.queue, 10, 100);
    await drained(pipeline.queue);
    await before.stop();

    const worker = await startIngest(sealing());
    await worker.entry(isDailySeal);
    await enqueue(pipeline.queue, 10, 100, 1_000);
    await drained(pipeline.queue);
    expect(await audit()).toMatchObject({ code: 0, stdout: 'Compared 1 day. Every cell agrees with its events.\n' });
  });

  it('is done once by several processes, and goes on when the one that did it is gone', async () => {
    const workers = await Promise.all([startIngest(sealing()), startIngest(sealing()), startIngest(sealing())]);
    await Promise.race(workers.map((worker) => worker.entry(isDailySeal)));
    const steps = workers.flatMap((worker) =>
      worker
        .entries()
        .filter(({ event }) => event === 'sealed')
        .map(stepOf),
    );
    expect(new Set(steps).size).toBe(steps.length);

    const sealers = workers.filter((worker) => worker.entries().some(({ event }) => event === 'sealed'));
    await Promise.all(sealers.map((worker) => worker.kill()));
    // As after a long stop: without watermarks everything must be sealed again.
    for (const shard of pipeline.shards.all) await execute(shard, 'TRUNCATE TABLE rollup_seals');
    if (sealers.length === workers.length) await startIngest(sealing());
    await until(
      'another process seals',
      60_000,
      async () => (await readWatermarks(pipeline.warehouse)).daily.sealedUntil > 0,
    );
  });

  it('ends with its process, also in the middle of a step', async () => {
    const worker = await startIngest(sealing());
    expect(await worker.stop()).toBe(0);
    // A stop that waited for a step would reach its deadline, log it, and still end with code 0.
    expect(worker.entries().map(({ event }) => event)).not.toContain('stopped_unfinished');
  });
});
