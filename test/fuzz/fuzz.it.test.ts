/**
 * The short form: fewer requests and events, in the same program that `npm run test:fuzz` starts. Only those with
 * random input: test/e2e/redis-users.it.test.ts and clickhouse-users.it.test.ts have the short form of the others.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { z } from 'zod';
import { testProgram } from '../harness/program.js';

/** The run takes a quarter of a minute on two cores. */
jest.setTimeout(8 * 60_000);

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FUZZES = ['requests', 'bytes', 'jobs', 'events'];
const ONLY = FUZZES.flatMap((name) => ['--only', name]);
const rowsSchema = z.array(z.object({ fuzz: z.string(), holds: z.boolean() }));

let rows: z.output<typeof rowsSchema>;
let program: ReturnType<typeof start> | undefined;

/** The program stops and removes everything when its IPC channel closes. */
function start() {
  const { PATH, HOME, TZ, TMPDIR } = process.env;
  const args = [testProgram('fuzz/main'), '--requests', '150', '--events', '400', '--json', ...ONLY];
  return spawn(process.execPath, args, {
    cwd: ROOT,
    env: { PATH, HOME, TZ, TMPDIR },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
}

beforeAll(async () => {
  program = start();
  if (!program.stdout) throw new Error('the program must be started with a pipe');
  const [output, [code]] = await Promise.all([text(program.stdout), once(program, 'exit')]);
  if (code !== 0) console.error(output);
  rows = rowsSchema.parse(JSON.parse(output.trimEnd().split('\n').at(-1) ?? ''));
});
afterAll(async () => {
  if (program?.exitCode !== null || program.signalCode !== null) return;
  program.kill('SIGTERM');
  await once(program, 'exit');
});

describe('the product under fuzz', () => {
  it.each(FUZZES)('holds every rule when it is given hostile %s', (name) => {
    expect(rows.find(({ fuzz }) => fuzz === name)).toEqual(expect.objectContaining({ holds: true }));
  });
});
