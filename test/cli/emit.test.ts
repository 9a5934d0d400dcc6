/** `meterline emit` and an HTTP server that answers as a collector does, or as what stands in front of it. */
import { EventEmitter, once } from 'node:events';
import { expect, it } from '@jest/globals';
import * as collector from '../emitter/fixture.js';
import { SANDBOX_EVENT } from '../harness/events.js';
import { json, type Respond, serve } from '../harness/serving.js';
import { runCommand } from './run-command.js';

const line = (n: number, accountId = 'acme') => JSON.stringify({ eventId: `event-${n}`, accountId });
/** Sends the lines to a server that gives these responses. */
const emit = async (
  responses: readonly Respond[],
  lines: readonly string[],
  args: readonly string[] = [],
  options: object = {},
) => {
  const { url, requests } = await serve(...responses);
  const env = { METERLINE_EMITTER_KEY: 'key' };
  const run = await runCommand(['emit', '-', '--url', url, ...args], { env, stdin: lines.join('\n'), ...options });
  return { ...run, requests };
};

/** Rejects the event with this id. */
const receipt =
  (rejectedId = '', status?: number): Respond =>
  (response, body) => {
    const rejection = { reason: 'no_price', message: 'there is none' };
    const usual = collector.receipt(JSON.parse(body), ({ eventId }) => eventId === rejectedId, rejection);
    json(status ?? usual.status, usual.body)(response, body);
  };
const result = (code: number, error?: string, message?: string, headers = {}) =>
  json(code, error === undefined ? { results: [] } : { code, error, message, requestId: 'r' }, headers);

it('every line is sent as it is, in requests of at most the batch size', async () => {
  const usages = [3, '03.0', '3', 'é\u2028'].map((usage) => JSON.stringify({ accountId: 'acme', usage }));
  const run = await emit([receipt()], [`${usages[0]}\r`, ...usages.slice(1)], ['--batch', '3', '--concurrency', '1']);
  expect(run).toMatchObject({ code: 0, stdout: 'Sent 4 events, up to line 4.\n' });
  const sent = run.requests.map(({ body }) => JSON.parse(body));
  expect(sent).toMatchObject([[{ usage: 3 }, { usage: '03.0' }, { usage: '3' }], [{ usage: 'é\u2028' }]]);
});

it('lines that are no events are not sent, and are named with their numbers, the first hundred', async () => {
  const bad = await emit([receipt()], [line(1), 'nope', '[1]', line(2)], ['--json']);
  const notJson = expect.stringMatching(/^not JSON: /);
  const listedBadLines = [
    { line: 2, message: notJson },
    { line: 3, message: 'not a JSON object' },
  ];
  expect([bad.code, JSON.parse(bad.stdout)]).toMatchObject([5, { events: 2, badLines: 2, listedBadLines }]);
  const { stderr } = await emit([receipt()], Array(1_000).fill('x'));
  expect(stderr).toMatch(
    /standard input:100: .*\nstandard input: and 900 more bad lines\nmeterline: 1,000 lines rejected/,
  );
});

it('--check holds every line to the rules, and sends nothing', async () => {
  const lines = ['{"a":1}', JSON.stringify(SANDBOX_EVENT)];
  const { code, stdout, stderr, requests } = await emit([], lines, ['--check']);
  expect([code, stdout, requests]).toEqual([5, '1 valid event.\n', []]);
  expect(stderr).toMatch(/^standard input:1: \w+: .*\nmeterline: 1 line rejected\n$/);
});

it('--check takes what the collector completes: an event without an account, whose id is any text', async () => {
  const { accountId: _, ...event } = SANDBOX_EVENT;
  const lines = [JSON.stringify({ ...event, eventId: 'build-4711' })];
  const ofAccount = await emit([], lines, ['--check', '--account', 'acme']);
  expect(ofAccount).toMatchObject({ code: 0, stdout: '1 valid event.\n' });
  expect(await emit([], lines, ['--check'])).toMatchObject({ code: 5, stdout: '0 valid events.\n' });
  const numbered = await emit([], [JSON.stringify({ ...SANDBOX_EVENT, eventId: 7 })], ['--check']);
  expect(numbered.stderr).toContain('invalid_event_id: eventId must be a string of 1 to 256 characters');
});

it('a file that is not there is named', async () => {
  const stderr = 'meterline: cannot read none.jsonl: no such file or directory\n';
  expect(await runCommand(['emit', 'none.jsonl', '--check'])).toEqual({ code: 1, stdout: '', stderr });
});

it('a collector that is not there is named', async () => {
  const stderr = expect.stringMatching(/cannot reach the collector at http:.*ECONNREFUSED/);
  const options = { env: { METERLINE_EMITTER_KEY: 'key' }, stdin: line(1) };
  expect(await runCommand(['emit', '-', '--url', 'http://127.0.0.1:2'], options)).toMatchObject({ code: 4, stderr });
  // Node's fetch has no code for a port that it refuses to use.
  const port9 = expect.stringContaining('line 1: The collector at http://127.0.0.1:9 cannot be reached.');
  const blocked = await runCommand(['emit', '-', '--url', 'http://127.0.0.1:9'], options);
  expect(blocked).toMatchObject({ code: 4, stderr: port9 });
});

it.each([
  ['200 with no word for any event', result(200), [], 1],
  ['404 with no word for any event', result(404), [], 1],
  ['503 with no word for any event', result(503, undefined, undefined, { 'retry-after': '0' }), [], 4],
  ['202 with no word for any event', result(202), [], 1],
  ['200, which is that of a check,', receipt(undefined, 200), [], 1],
  ['202 to a check', receipt(undefined, 202), ['--dry-run'], 1],
] as const)('a response of %s does not count as sent', async (_what, respond, args, code) => {
  const run = await emit([respond], [line(1)], args);
  expect(run).toMatchObject({ code, stdout: '', stderr: expect.stringContaining('unexpected_response') });
  if (args.length === 0) expect(run.stderr).toContain('Sent 0 events');
});

it('a request whose response is cut off is sent again', async () => {
  const cutOff: Respond = (response) => {
    response.writeHead(202, { 'content-length': 100 }).write('{"accepted":1');
    setImmediate(() => response.destroy());
  };
  const run = await emit([cutOff, receipt()], [line(1)]);
  expect(run).toMatchObject({ code: 0, stdout: 'Sent 1 event, up to line 1.\n' });
});

it('what was sent is said also when the next request is not allowed', async () => {
  const responses = [receipt('event-2'), result(403, 'forbidden', 'Access denied.')];
  const run = await emit(responses, [line(1), line(2), line(3)], ['--batch', '2']);
  expect(run.code).toBe(3);
  expect(run.stderr).toMatch(
    /^standard input:2: no_price: there is none\nSent 1 event, .* Continue with --from-line 3\. .*\nmeterline: account acme, line 3: Access denied/,
  );
});

it('a request of more than 1 KiB is compressed', async () => {
  const lines = Array.from({ length: 100 }, (_, n) => line(n));
  const run = await emit([receipt()], [...lines, line(100)], ['--batch', '100', '--concurrency', '1']);
  expect(run.code).toBe(0);
  const [large, small] = run.requests;
  expect([large, small].map((request) => request?.headers['content-encoding'])).toEqual(['gzip', undefined]);
  expect(JSON.parse(large?.body ?? '')).toHaveLength(100);
});

it('as many requests are in flight as --concurrency says', async () => {
  const waiting: (() => void)[] = [];
  let most = 0;
  const respond: Respond = (response, body) => {
    waiting.push(() => receipt()(response, body));
    most = Math.max(most, waiting.length);
    if (waiting.length === 3) for (const go of waiting.splice(0)) go();
  };
  const lines = [1, 2, 3, 4, 5, 6].map((n) => line(n));
  const run = await emit([respond], lines, ['--batch', '1', '--concurrency', '3']);
  expect(run).toMatchObject({ code: 0, stdout: 'Sent 6 events, up to line 6.\n' });
  expect(most).toBe(3);
});

it('after a failure --from-line goes on at the first line that was not sent, although later ones were', async () => {
  const denied = result(403, 'forbidden', 'Access denied.');
  const secondFails = (): Respond => {
    const third = new EventEmitter();
    const isThirdSent = once(third, 'sent');
    return (response, body) => {
      if (body.includes('event-3')) response.once('close', () => third.emit('sent'));
      if (body.includes('event-2')) isThirdSent.then(() => denied(response, body));
      else receipt()(response, body);
    };
  };
  const lines = ['', line(1), line(2), line(3)];
  const run = await emit([secondFails()], lines, ['--batch', '1', '--concurrency', '2']);
  expect(run).toMatchObject({ code: 3, stdout: '' });
  expect(run.stderr).toMatch(
    /^Sent 2 events, up to line 2\. Continue with --from-line 3\. .*\nmeterline: account acme, line 3: Access denied/,
  );
  const first = await emit([secondFails()], lines.slice(2), ['--batch', '1', '--concurrency', '2']);
  expect(first.stderr).toMatch(
    /^Sent 1 event\. Continue with --from-line 1\. .*\nmeterline: account acme, line 1: Access/,
  );
  const beyond = await emit([receipt()], lines, ['--from-line', '6']);
  const stderr = 'meterline: standard input ends with line 4, before --from-line 6\n';
  expect(beyond).toMatchObject({ code: 1, stdout: '', stderr, requests: [] });
  const rest = await emit([receipt()], lines, ['--from-line', '3']);
  expect(rest).toMatchObject({ code: 0, stdout: 'Sent 2 events, up to line 4.\n' });
  expect(JSON.parse(rest.requests[0]?.body ?? '')).toMatchObject([{ eventId: 'event-2' }, { eventId: 'event-3' }]);
});

it('a terminal shows how far the file is sent', async () => {
  const lines = [line(1), line(2)];
  const args = ['--batch', '1', '--concurrency', '1'];
  const { stderr } = await emit([receipt()], lines, args, { isTerminal: true });
  expect(stderr.split('\r\u001b[K')).toEqual(['', 'Sent 1 event, up to line 1', 'Sent 2 events, up to line 2', '']);
  expect((await emit([receipt()], lines, args)).stderr).toBe('');
});

it('events of any accounts are sent in one request, and --account is for those that name none', async () => {
  const lines = [line(1, 'a'), line(2, 'b'), '{"eventId":"event-3"}'];
  const { requests } = await emit([receipt()], lines, ['--account', 'c']);
  expect(requests.map(({ url }) => url)).toEqual(['/v0/events']);
  expect(JSON.parse(requests[0]?.body ?? '')).toMatchObject([
    { accountId: 'a' },
    { accountId: 'b' },
    { accountId: 'c' },
  ]);
});

it('a body that is too large is halved until it is not, and an event that is too large alone is a rejected line', async () => {
  const tooLarge = result(413, 'body_too_large', 'The body may have 5 bytes.');
  const respond: Respond = (response, body) => (body.includes('event-3') ? tooLarge : receipt())(response, body);
  const lines = [1, 2, 3, 4, 5, 6, 7].map((n) => line(n));
  const run = await emit([respond], lines);
  const stdout = expect.stringMatching(/^Sent 6 events, up to line 7\.\n$/);
  expect(run).toMatchObject({ code: 5, stdout });
  expect(run.stderr).toContain('standard input:3: too large: The body may have 5 bytes.\n');
});

it.each<[string, Respond]>([
  ['for a response', () => undefined],
  ['to send again', result(503, 'busy', 'Busy.', { 'retry-after': '25' })],
])('a command that waits %s ends with Ctrl-C', async (_what, respond) => {
  const interrupt = new EventEmitter();
  const respondAndInterrupt: Respond = (...request) => {
    respond(...request);
    setImmediate(() => interrupt.emit('SIGINT'));
  };
  const run = await emit([respondAndInterrupt], [line(1)], [], { interruptOn: once(interrupt, 'SIGINT') });
  expect(run).toMatchObject({ code: 1, stderr: expect.stringMatching(/^meterline: interrupted\. /) });
});
