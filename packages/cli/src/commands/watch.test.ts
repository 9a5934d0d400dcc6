import { PassThrough } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { CommandError, EXIT_CODES } from '../failure.js';
import { watch } from './metrics.js';

const ENTER = '\u001b[?1049h\u001b[?25l';
const LEAVE = '\u001b[?25h\u001b[?1049l';

/** Results one after another, an error where there is none; the person ends it after the last. */
async function watched(results: readonly (string | Error)[], rows?: number) {
  const printed = { stdout: '', stderr: '' };
  const streamOf = (name: keyof typeof printed) =>
    Object.assign(new PassThrough({ encoding: 'utf8' }), { rows }).on('data', (chunk: string) => {
      printed[name] += chunk;
    });
  const [stdout, stderr] = [streamOf('stdout'), streamOf('stderr')];
  const interruption = new AbortController();
  let turn = 0;
  const read = async () => {
    const result = results[turn] ?? '';
    turn += 1;
    if (turn === results.length) setImmediate(() => interruption.abort());
    if (result instanceof Error) throw result;
    return result;
  };
  const now = () => new Date('2026-11-22T10:02:47.123Z');
  const options = { seconds: 0.001, signal: interruption.signal, isOnScreen: rows !== undefined, read };
  await watch({ stdout, stderr, now }, options);
  await new Promise<void>((resolve) => stdout.end(() => stderr.end(resolve)));
  return printed;
}

const away = new CommandError('cannot reach the API\nhint', EXIT_CODES.unavailable);

describe('a watch', () => {
  it('prints one result after another where there is no terminal, and goes on when the service is away', async () => {
    expect(await watched(['a\n', away, 'b\n'])).toEqual({
      stdout: 'a\nb\n',
      stderr: 'meterline: cannot reach the API\nhint; asking again in 0.001 s\n',
    });
  });

  it('draws on another screen of a terminal, no more than fits, and leaves the last result behind', async () => {
    const { stdout, stderr } = await watched(['1\n2\n3\n4\n\n', away], 5);
    const [first, second] = ['as of 10:02:47 UTC', '10:02:47 UTC: cannot reach the API'].map(
      (state) =>
        `\u001b[HEvery 0.001 s, ${state}. Ctrl-C ends.\u001b[K\n\u001b[K\n1\u001b[K\n2\u001b[K\n… 2 more lines\u001b[K\u001b[J`,
    );
    expect(stdout).toBe(`${ENTER}${first}${second}${LEAVE}1\n2\n3\n4\n`);
    expect(stderr).toBe('');
  });

  it('ends with any other error, and gives the terminal back', async () => {
    const refused = new CommandError('not allowed', EXIT_CODES.notAllowed);
    await expect(watched([refused])).rejects.toBe(refused);
  });
});
