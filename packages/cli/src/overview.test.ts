import { PassThrough } from 'node:stream';
import { expect, it } from '@jest/globals';
import { overview } from './overview.js';
import { runProgram } from './program.js';

/** What commander prints, on a terminal of that width or into a pipe. */
async function printedByCommander(args: readonly string[], columns: number | undefined): Promise<string> {
  const stdout = Object.assign(new PassThrough(), { columns });
  const openContext = () => Promise.reject(new Error('no command is called'));
  expect(await runProgram(args, { stdout, stderr: new PassThrough() }, openContext)).toBe(0);
  return String(stdout.read());
}

it.each([['--help'], ['-h'], ['help'], ['--version'], ['-V']])(
  '%s prints what commander would print',
  async (asked) => {
    expect(overview([asked], undefined)).toBe(await printedByCommander([asked], undefined));
  },
);

it('is left to commander where a line has to be broken, and only there', async () => {
  const whole = await printedByCommander(['--help'], undefined);
  for (let columns = 60; columns < 130; columns += 1) {
    const printed = await printedByCommander(['--help'], columns);
    expect(overview(['--help'], columns)).toBe(printed === whole ? whole : undefined);
  }
});

it.each([[[]], [['metrics', '--help']], [['help', 'metrics']], [['--help', '--json']], [['-hV']], [['helps']]])(
  'is not what %j asks for',
  (args) => {
    expect(overview(args, undefined)).toBeUndefined();
  },
);
