/** The next jobs, which are asked for before those taken before them begin. */
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { Stage, until } from '../../../test/queue-stage.js';
import { PlainJobs } from './plain-jobs.js';

let stage: Stage;
let store: () => void;
beforeEach(() => {
  stage = new Stage();
  store = () => undefined;
});
afterEach(() => {
  store();
  return stage.close();
});

it('are asked for before those, and no more than there is room for', async () => {
  await stage.add(1_000);
  const take = jest.spyOn(PlainJobs.prototype, 'take');
  const asked: number[] = [];
  let inWork = 0;
  let most = 0;
  const many = stage.open(undefined, {
    concurrency: 400,
    shortWork: async () => {
      if (inWork === 0) asked.push(take.mock.calls.length);
      inWork += 1;
      most = Math.max(most, inWork);
      await new Promise((resolve) => setTimeout(resolve, 20));
      inWork -= 1;
    },
  });
  void many.worker.run();
  await until(() => stage.done.length === 1_000);
  expect(most).toBeLessThanOrEqual(400);
  expect(asked[0]).toBe(2);
  take.mockRestore();
});

it('begin, so that their locks are renewed, also when there is no room for them any more', async () => {
  await stage.add(600);
  const begun = new Set<string>();
  const isStored = new Promise<void>((resolve) => {
    store = resolve;
  });
  const many = stage.open(undefined, {
    concurrency: 500,
    shortWork: ({ id }) => {
      begun.add(id);
      // Large jobs came.
      many.worker.concurrency = 2;
      return isStored;
    },
  });
  void many.worker.run();
  // More than those of one command.
  await until(() => begun.size > 256);
  expect(begun.size).toBeLessThanOrEqual(500);
});

it('are begun and acknowledged by a worker that ends', async () => {
  await stage.add(1_000);
  const many = stage.open(undefined, { shortWork: async () => void many.worker.close() });
  await many.worker.run();
  const { length } = stage.done;
  // More than the first, which BullMQ took, and those of one command.
  expect(length).toBeGreaterThan(1 + 256);
  expect(length).toBeLessThanOrEqual(1 + 500);
  expect(await stage.queue.getJobCounts('waiting', 'active')).toEqual({ waiting: 1_000 - length, active: 0 });
});
