/**
 * The short form: one round of each fault, in the same program that `npm run test:faults` starts. `npm test` plays those that
 * kill what events pass through; `npm run test:full` plays all.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { z } from 'zod';
import { programArguments } from '../program.js';
import { FAULTS } from './catalog.js';

const IN_NPM_TEST: readonly string[] = ['worker-killed', 'clickhouse-killed', 'redis-killed'];
const PLAYED = FAULTS.filter(({ name }) => !process.env.METERLINE_TEST_SHORT || IN_NPM_TEST.includes(name));

/** A run of all takes two minutes on two cores. */
const WITHIN_MS = 30 * 60_000;
const ROOT = fileURLToPath(new URL('../..', import.meta.url));

jest.setTimeout(WITHIN_MS);

const tableSchema = z.array(
  z.object({
    fault: z.string(),
    rounds: z.number(),
    events: z.number(),
    lost: z.number(),
    doubled: z.number(),
    stuck: z.number(),
    complaints: z.number(),
  }),
);

let code: unknown;
let table: z.output<typeof tableSchema>;
let harness: ReturnType<typeof start> | undefined;

/** The program stops and removes everything when its IPC channel closes. */
function start() {
  const only = PLAYED.map(({ name }) => name).join(',');
  // One lane needs servers of its own once; it waits more than it works.
  const lanes = process.env.METERLINE_TEST_SHORT ? '1' : '2';
  const options = ['--brief', '--rounds', '1', '--lanes', lanes, '--only', only, '--json'];
  const args = [...programArguments('test/faults/main'), ...options];
  const { PATH, HOME, TZ, TMPDIR, METERLINE_TEST_SERVICES } = process.env;
  return spawn(process.execPath, args, {
    cwd: ROOT,
    env: { PATH, HOME, TZ, TMPDIR, METERLINE_TEST_SERVICES },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
}

beforeAll(async () => {
  harness = start();
  if (!harness.stdout) throw new Error('the harness must be started with a pipe');
  const [output, [exitCode]] = await Promise.all([text(harness.stdout), once(harness, 'exit')]);
  if (exitCode !== 0) console.error(output);
  code = exitCode;
  table = tableSchema.parse(JSON.parse(output.trimEnd().split('\n').at(-1) ?? ''));
});
afterAll(async () => {
  if (harness?.exitCode !== null || harness.signalCode !== null) return;
  harness.kill('SIGTERM');
  await once(harness, 'exit');
});

describe('after sudden death', () => {
  it.each(PLAYED.map(({ name, injects }) => [name, injects]))(
    '%s, every event counts once and none is stuck: %s',
    (name) => {
      const row = table.find(({ fault }) => fault === name);
      expect(row).toMatchObject({ rounds: 1, lost: 0, doubled: 0, stuck: 0, complaints: 0 });
      expect(row?.events).toBeGreaterThan(600);
    },
  );

  it('the harness ends with exit code 0', () => {
    expect(code).toBe(0);
  });
});
