import { expect, it } from '@jest/globals';
import { pino } from 'pino';
import { limitLine, MAX_LINE_BYTES } from './log-destination.js';

/** A line as pino writes it. */
function lineOf(fields: object, msg: string): string {
  const lines: string[] = [];
  pino({ name: 'meterline-test' }, { write: (line: string) => void lines.push(line) }).info(fields, msg);
  return lines.join('');
}

it('a line of the longest length stays as it is', () => {
  const line = lineOf({}, 'x'.repeat(MAX_LINE_BYTES - lineOf({}, '').length));
  expect(Buffer.byteLength(line)).toBe(MAX_LINE_BYTES);
  expect(limitLine(line)).toBe(line);
});

it('a longer line keeps its fields, says that it is truncated, and its long text ends in "…"', () => {
  const fields = { event: 'request_failed', path: 'p'.repeat(50_000), status: 500, caller: { account: 'acme' } };
  const shorter = limitLine(lineOf(fields, 'failed'));
  expect(Buffer.byteLength(shorter)).toBeLessThanOrEqual(MAX_LINE_BYTES);
  expect(shorter).toMatch(/^[^\n]+\n$/);
  expect(JSON.parse(shorter)).toMatchObject({
    ...{ truncated: true, level: 30, name: 'meterline-test', msg: 'failed' },
    ...fields,
    path: expect.stringMatching(/^p{1000,}…$/),
  });
});

it('no character is cut in half', () => {
  for (const shift of ['', '-']) {
    const { msg } = JSON.parse(limitLine(lineOf({}, shift + '😀'.repeat(20_000))));
    expect(msg).toMatch(/😀…$/u);
  }
});

const deep = Array.from({ length: 200 }).reduce<unknown>((inner) => ({ inner, text: 'x'.repeat(500) }), 'end');

it.each([
  ['characters that JSON writes as six', { text: '\u0000'.repeat(20_000) }],
  ['half characters', { text: '\ud800'.repeat(20_000) }],
  ['characters of three bytes', { text: '€'.repeat(20_000) }],
  [
    'many fields',
    Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`field ${index}`, '\u0000'.repeat(90)])),
  ],
  [
    'long names',
    Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`${index}${'\u0000'.repeat(5_000)}`, 1])),
  ],
  ['a long list of objects', { list: Array.from({ length: 5_000 }, () => ({ text: '€'.repeat(90) })) }],
  ['a deep object', { deep }],
])('with %s the line is short, one line and JSON', (_, fields) => {
  const shorter = limitLine(lineOf(fields, '\u0000'.repeat(5_000)));
  expect(Buffer.byteLength(shorter)).toBeLessThanOrEqual(MAX_LINE_BYTES);
  expect(shorter.indexOf('\n')).toBe(shorter.length - 1);
  expect(JSON.parse(shorter)).toMatchObject({ truncated: true, level: 30 });
});
