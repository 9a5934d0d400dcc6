/**
 * The short form: fewer requests and events, in the same program that `npm run test:attack` starts. Of the attacks only those that
 * no other test makes; the file at the head of each of the others names it.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { z } from 'zod';
import { programArguments } from '../program.js';
import { FUZZES } from './catalog.js';

/** The run takes a quarter of a minute on two cores. */
jest.setTimeout(8 * 60_000);

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const ONLY = FUZZES.flatMap(({ name }) => ['--only', name]);
const rowsSchema = z.array(z.object({ attack: z.string(), faults: z.number() }));

let rows: z.output<typeof rowsSchema>;
let program: ReturnType<typeof start> | undefined;

/** The program stops and removes everything when its IPC channel closes. */
function start() {
  const { PATH, HOME, TZ, TMPDIR, METERLINE_TEST_SERVICES } = process.env;
  const args = [...programArguments('test/attack/main'), '--requests', '150', '--events', '400', '--json', ...ONLY];
  return spawn(process.execPath, args, {
    cwd: ROOT,
    env: { PATH, HOME, TZ, TMPDIR, METERLINE_TEST_SERVICES },
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

describe('under attack', () => {
  it.each(FUZZES.map(({ name, what }) => [name, what]))('by %s, everything holds: %s', (name) => {
    expect(rows.find(({ attack }) => attack === name)).toEqual(expect.objectContaining({ faults: 0 }));
  });
});
