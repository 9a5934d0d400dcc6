import { expect, it } from '@jest/globals';
import { createLog, onceAMinute } from './log.js';

function logged(err: unknown): Record<string, unknown> {
  const lines: string[] = [];
  createLog('meterline-test', 'info', { write: (line) => void lines.push(line) }).warn(
    { event: 'outage', err },
    'away',
  );
  expect(lines).toHaveLength(1);
  return JSON.parse(lines[0] ?? '');
}

/** As ioredis makes it: with the command that was refused. */
function refusal(message: string): Error {
  return Object.assign(new Error(message), { command: { name: 'hello', args: ['3', 'AUTH', 'default', 's3cret'] } });
}

it('a log has the type, message, stack and code of an error', () => {
  const error = Object.assign(new TypeError('cannot connect'), { code: 'ECONNREFUSED', syscall: 'connect' });
  expect(logged(error)).toMatchObject({ name: 'meterline-test', level: 40, event: 'outage', msg: 'away' });
  expect(logged(error)['err']).toEqual({
    type: 'TypeError',
    message: 'cannot connect',
    stack: error.stack,
    code: 'ECONNREFUSED',
  });
});

it('a log leaves out what a library attached to an error, to its cause, or to one of several', () => {
  const error = new Error('no answer', { cause: new AggregateError([refusal('first'), refusal('second')], 'both') });
  for (const each of [refusal('WRONGPASS'), error, error.cause]) {
    expect(JSON.stringify(logged(each))).not.toContain('s3cret');
  }
  expect(logged(error)['err']).toMatchObject({ type: 'Error', message: expect.stringContaining('both') });
  expect(logged(error.cause)['err']).toMatchObject({ errors: [{ message: 'first' }, { message: 'second' }] });
});

it('onceAMinute lets one call through, and the next one a minute later', () => {
  const written: string[] = [];
  let now = 0;
  const write = onceAMinute(
    (word: string) => void written.push(word),
    () => now,
  );
  for (const [at, word] of [
    [0, 'a'],
    [59_999, 'b'],
    [60_000, 'c'],
    [119_999, 'd'],
    [120_000, 'e'],
  ] as const) {
    now = at;
    write(word);
  }
  expect(written).toEqual(['a', 'c', 'e']);
});
