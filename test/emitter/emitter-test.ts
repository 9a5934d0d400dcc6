/** A collector that a test controls, and emitters that send to it: new ones for each test of a file. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach } from '@jest/globals';
import { type Emitter, type EmitterOptions, type EventToRecord, openEmitter, type Problem } from '@meterline/emitter';
import { TestCollector } from './test-collector.js';

export const USAGE: EventToRecord = {
  accountId: 'acme',
  workspace: 'production',
  resourceType: 'agent',
  resourceName: 'support',
  billingDimension: 'agent_async_requests_count',
  usage: 1,
};
const { usage: _, ...OF_AGENT } = USAGE;
export const SANDBOX = {
  ...OF_AGENT,
  resourceType: 'sandbox',
  billingDimension: 'sandbox_compute_runtime_gbs',
  gb: 4,
} as const;

/** What the test that runs has. */
interface Fixture {
  collector: TestCollector;
  /** What the emitters have told. */
  problems: Problem[];
}

/** @returns the fixture, new for each test, and what opens an emitter that is closed after the test */
export function useEmitters(usual: Partial<EmitterOptions> = {}) {
  const fixture = {} as Fixture;
  const emitters: Emitter[] = [];
  beforeEach(async () => {
    fixture.collector = await TestCollector.start();
    fixture.problems = [];
  });
  afterEach(async () => {
    for (const emitter of emitters.splice(0)) await emitter.close({ timeoutMs: 0 });
    fixture.collector.stop();
  });
  const open = async (options: Partial<EmitterOptions> = {}) => {
    const { problems, collector } = fixture;
    const onProblem = (problem: Problem) => problems.push(problem);
    const emitter = await openEmitter({ url: collector.url, apiKey: 'key', onProblem, ...usual, ...options });
    emitters.push(emitter);
    return emitter;
  };
  return { fixture, open };
}

export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await sleep(1);
}
