/** meterline queue status, with a worker and without. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { drained, enqueue, openPipeline, type Pipeline } from '../e2e/pipeline.js';
import { killServices, startIngest } from '../services.js';
import { runCommand } from './run-command.js';

let pipeline: Pipeline;
beforeAll(async () => {
  pipeline = await openPipeline();
});
afterAll(async () => {
  await killServices();
  await pipeline.close();
});

function status(...args: string[]) {
  const { REDIS_URL = '', QUEUE_PREFIX = '' } = pipeline.env;
  return runCommand(['queue', 'status', ...args], { env: { REDIS_URL, QUEUE_PREFIX } });
}

it('shows what waits while no worker runs, and what is left when one has stored it', async () => {
  await enqueue(pipeline.queue, 1_200, 1);
  const waiting = await status();
  expect(waiting.code).toBe(0);
  expect(waiting.stdout).toMatch(
    /^waiting {9}1,200\noldest waiting {2}\d+ s\nactive {10}0\ndelayed {9}0\nfailed {10}0\nflow parents {4}0\ncompleted kept {2}0\npaused {10}no\nworkers {9}0\n$/,
  );

  await startIngest(pipeline.env);
  await drained(pipeline.queue);
  expect(JSON.parse((await status('--json')).stdout)).toEqual({
    queues: 1,
    waiting: 0,
    active: 0,
    delayed: 0,
    failed: 0,
    flowParents: 0,
    completedKept: 20,
    paused: false,
    oldestWaitingSeconds: null,
    workers: 1,
  });
});
