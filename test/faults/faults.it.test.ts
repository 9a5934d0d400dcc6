/**
 * One round, in its short form, of each fault that the table marks for `npm test`, in the same program that `npm run test:faults` starts.
 * `npm run test:full` plays all of them with the program itself.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { z } from 'zod';
import { testProgram } from '../harness/program.js';
import { markdownTable } from '../harness/table.js';
import { FAULTS, TABLE } from './table.js';

/** A run of all takes two minutes on two cores. */
jest.setTimeout(15 * 60_000);

const PLAYED = FAULTS.filter(({ inNpmTest }) => inNpmTest);
const count = z.number();
const summaries = z.array(
  z.object({
    fault: z.string(),
    rounds: count,
    events: count,
    lost: count,
    doubled: count,
    stuck: count,
    complaints: count,
  }),
);

let code: unknown;
let table: z.output<typeof summaries>;
let program: ReturnType<typeof start> | undefined;

/** It stops and removes everything when its IPC channel closes. */
function start() {
  const only = PLAYED.map(({ name }) => name).join(',');
  const args = [testProgram('faults/main'), '--brief', '--rounds', '1', '--lanes', '2', '--only', only, '--json'];
  const { PATH, HOME, TZ, TMPDIR } = process.env;
  return spawn(process.execPath, args, {
    env: { PATH, HOME, TZ, TMPDIR },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
}

beforeAll(async () => {
  program = start();
  if (!program.stdout) throw new Error('the program must be started with a pipe');
  const [output, [exitCode]] = await Promise.all([text(program.stdout), once(program, 'exit')]);
  if (exitCode !== 0) console.error(output);
  code = exitCode;
  table = summaries.parse(JSON.parse(output.trimEnd().split('\n').at(-1) ?? ''));
});
afterAll(async () => {
  if (program?.exitCode !== null || program.signalCode !== null) return;
  program.kill('SIGTERM');
  await once(program, 'exit');
});

describe('the table of faults', () => {
  it.each(PLAYED.map(({ name, victim, how, while: doing }) => [name, victim, how, doing]))(
    '%s: every event counts once and none is stuck (%s: %s, while %s)',
    (name) => {
      const row = table.find(({ fault }) => fault === name);
      expect(row).toMatchObject({ rounds: 1, lost: 0, doubled: 0, stuck: 0, complaints: 0 });
      expect(row?.events).toBeGreaterThan(0);
    },
  );

  it('the program ends with exit code 0 when nothing was wrong', () => {
    expect(code).toBe(0);
  });

  it('is the one in README.md, row by row', () => {
    const rows = TABLE.map((row) => [
      row.victim,
      row.how,
      row.while,
      'name' in row ? `\`${row.name}\`${'inNpmTest' in row ? ' •' : ''}` : '',
      'also' in row ? row.also : '',
    ]);
    const written = markdownTable(['victim', 'how', 'while', 'row', 'also'], rows);
    expect(readFileSync(new URL('README.md', import.meta.url), 'utf8')).toContain(written);
  });
});
