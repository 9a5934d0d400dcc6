import { expect, it } from '@jest/globals';
import { createLog, limitLine, MAX_LINE_BYTES, Outage, onceAMinute } from './log.js';

/** A log and its lines, as they are written. */
function openLog() {
  const lines: string[] = [];
  const log = createLog('meterline-test', 'info', { write: (line) => void lines.push(line) });
  return { log, lines, entries: () => lines.map((line) => JSON.parse(line)) };
}

function lineOf(fields: object, msg: string): string {
  const { log, lines } = openLog();
  log.info(fields, msg);
  return lines.join('');
}

const loggedError = (err: unknown) => JSON.parse(lineOf({ err }, 'away')).err;

/** As ioredis makes it: with the command that was refused. */
function refusal(message: string): Error {
  return Object.assign(new Error(message), { command: { name: 'hello', args: ['3', 'AUTH', 'default', 's3cret'] } });
}

it('a log has the type, message, stack and code of an error', () => {
  const error = Object.assign(new TypeError('cannot connect'), { code: 'ECONNREFUSED', syscall: 'connect' });
  const { message, stack, code } = error;
  expect(loggedError(error)).toEqual({ type: 'TypeError', message, stack, code });
});

it('a log omits fields that a library attached to an error, to its cause, or to an aggregated error', () => {
  const error = new Error('no response', { cause: new AggregateError([refusal('first'), refusal('second')], 'both') });
  for (const each of [refusal('WRONGPASS'), error, error.cause]) {
    expect(lineOf({ err: each }, 'away')).not.toContain('s3cret');
  }
  expect(loggedError(error)).toMatchObject({ type: 'Error', message: expect.stringContaining('both') });
  expect(loggedError(error.cause)).toMatchObject({ errors: [{ message: 'first' }, { message: 'second' }] });
});

it('a line of maximum length stays unchanged', () => {
  const line = lineOf({}, 'x'.repeat(MAX_LINE_BYTES - lineOf({}, '').length));
  expect(Buffer.byteLength(line)).toBe(MAX_LINE_BYTES);
  expect(limitLine(line)).toBe(line);
});

it('a line that is too long keeps its fields, is marked as truncated, and its long text ends in "…"', () => {
  const fields = { event: 'request_failed', path: 'p'.repeat(50_000), status: 500, caller: { account: 'acme' } };
  expect(JSON.parse(limitLine(lineOf(fields, 'failed')))).toMatchObject({
    ...{ truncated: true, level: 30, name: 'meterline-test', msg: 'failed' },
    ...{ ...fields, path: expect.stringMatching(/^p{1000,}…$/) },
  });
});

it('a shortened text contains only whole characters', () => {
  for (const shift of ['', '-']) {
    const { msg } = JSON.parse(limitLine(lineOf({}, shift + '😀'.repeat(20_000))));
    expect(msg).toMatch(/😀…$/u);
  }
});

const many = <T>(count: number, item: (index: number) => T) => Array.from({ length: count }, (_, index) => item(index));
const deep = many(200, () => 'x'.repeat(500)).reduce<unknown>((inner, text) => ({ inner, text }), 'end');

it.each([
  ['characters that JSON writes as six', { text: '\u0000'.repeat(20_000) }],
  ['half characters', { text: '\ud800'.repeat(20_000) }],
  ['characters of three bytes', { text: '€'.repeat(20_000) }],
  ['many fields', Object.fromEntries(many(5_000, (index) => [`field ${index}`, '\u0000'.repeat(90)]))],
  ['long names', Object.fromEntries(many(20, (index) => [`${index}${'\u0000'.repeat(5_000)}`, 1]))],
  ['a long list of objects', { list: many(5_000, () => ({ text: '€'.repeat(90) })) }],
  ['a deep object', { deep }],
])('a line with %s becomes short, and stays one line of JSON', (_, fields) => {
  const shorter = limitLine(lineOf(fields, '\u0000'.repeat(5_000)));
  expect(Buffer.byteLength(shorter)).toBeLessThanOrEqual(MAX_LINE_BYTES);
  expect(shorter.indexOf('\n')).toBe(shorter.length - 1);
  expect(JSON.parse(shorter)).toMatchObject({ truncated: true, level: 30 });
});

it('onceAMinute passes one call, and the next call a minute later', () => {
  const written: number[] = [];
  let now = 0;
  const write = onceAMinute(
    (at: number) => void written.push(at),
    () => now,
  );
  for (now of [0, 59_999, 60_000, 119_999, 120_000]) write(now);
  expect(written).toEqual([0, 60_000, 120_000]);
});

it('an outage because of an untrusted certificate is logged with the fix', () => {
  const { log, entries } = openLog();
  const reason = Object.assign(new Error('self-signed certificate'), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
  // As fetch does, which reads the keys of tokens.
  new Outage(log, 'JWKS', 'tokens wait').failed(new TypeError('fetch failed', { cause: reason }));
  const hint = 'its certificate is not trusted: name the file of its authority in NODE_EXTRA_CA_CERTS';
  expect(entries()).toMatchObject([{ msg: `JWKS does not respond; ${hint}; tokens wait` }]);
});

it('each outage is logged with its cause, once a minute while it lasts, and once when it ends', () => {
  const { log, entries } = openLog();
  let now = 1_000_000;
  const outage = new Outage(log, 'ClickHouse', 'jobs wait', () => now);
  const failFor = (seconds: number) => {
    for (let second = 0; second < seconds; second += 1, now += 1_000) outage.failed(new Error('away'));
  };
  outage.recovered();
  failFor(130);
  expect(outage.isOn).toBe(true);
  outage.recovered();
  outage.recovered();
  expect(outage.isOn).toBe(false);
  failFor(2);
  expect(entries()).toMatchObject([
    { event: 'outage', server: 'ClickHouse', failures: 1, seconds: 0, err: { message: 'away' } },
    { event: 'outage', seconds: 60 },
    { event: 'outage', seconds: 120 },
    { event: 'outage_over', failures: 130, seconds: 130 },
    { event: 'outage', failures: 1, seconds: 0 },
  ]);
});
