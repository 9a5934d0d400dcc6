/** `meterline emit` and an HTTP server that answers as a collector does, or as what stands in front of it. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { runCommand } from './run-command.js';

type Event = Readonly<Record<string, unknown>>;
type Respond = (response: ServerResponse, events: readonly Event[], request: IncomingMessage) => void;

let server: Server;
let url: string;
/** Answers, one after the other; the last one all that come later. */
let answers: Respond[];
let requests: (readonly Event[])[];
beforeEach(async () => {
  requests = [];
  server = createServer(async (request, response) => {
    const events = (await json(request)) as Event[];
    requests.push(events);
    (answers[requests.length - 1] ?? answers.at(-1))?.(response, events, request);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  url = typeof address === 'object' ? `http://127.0.0.1:${address?.port}` : '';
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

const line = (n: number, accountId = 'acme') => JSON.stringify({ eventId: `event-${n}`, accountId });
const emit = (lines: readonly string[], options: { args?: readonly string[]; interruptOn?: Promise<unknown> } = {}) =>
  runCommand(['emit', '-', '--url', url, ...(options.args ?? [])], {
    env: { METERLINE_EMITTER_KEY: 'key' },
    stdin: lines.join('\n'),
    ...(options.interruptOn && { interruptOn: options.interruptOn }),
  });

/** Refuses those events. */
const receipt =
  (isRefused: (event: Event) => boolean = () => false, status = 202): Respond =>
  (response, events) => {
    const results = events.map((event, index) =>
      isRefused(event)
        ? { index, status: 'rejected', reason: 'no_price', message: 'there is none' }
        : { index, status: 'accepted' },
    );
    const rejected = events.filter(isRefused).length;
    response.writeHead(status).end(JSON.stringify({ accepted: events.length - rejected, rejected, results }));
  };
const answer =
  (status: number, body: unknown, headers = {}): Respond =>
  (response) =>
    response.writeHead(status, headers).end(JSON.stringify(body));

describe('what is sent', () => {
  it('every line is sent as it is, in requests of at most the batch size', async () => {
    answers = [receipt()];
    const usages = [3, '03.0', '3'].map((usage) => JSON.stringify({ accountId: 'acme', usage }));
    const run = await emit([`${usages[0]}\r`, ...usages.slice(1)], { args: ['--batch', '2'] });
    expect(run).toMatchObject({ code: 0, stdout: 'Sent 3 events in 2 jobs, up to line 3.\n' });
    expect(requests.map((events) => events.map(({ usage }) => usage))).toEqual([[3, '03.0'], ['3']]);
  });

  it('lines that are no events are not sent, and are named with their numbers, the first hundred', async () => {
    answers = [receipt()];
    const bad = await emit([line(1), 'nope', '[1]', line(2)], { args: ['--json'] });
    expect([bad.code, JSON.parse(bad.stdout)]).toMatchObject([
      5,
      {
        events: 2,
        badLines: 2,
        listedBadLines: [
          { line: 2, message: expect.stringMatching(/^not JSON: /) },
          { line: 3, message: 'not a JSON object' },
        ],
      },
    ]);
    const worse = await emit(Array(1_000).fill('x'));
    expect(worse.stderr).toMatch(
      /standard input:100: .*\nstandard input: and 900 more bad lines\nmeterline: 1,000 lines rejected/,
    );
  });
});

describe('what counts as sent', () => {
  it.each([
    [200, 1],
    [404, 1],
    [503, 4],
    [202, 1],
  ])('is not what an answer with %d and no word for any event says', async (status, code) => {
    answers = [answer(status, { results: [] }, { 'retry-after': '0' })];
    const run = await emit([line(1)]);
    expect(run).toMatchObject({ code, stdout: '', stderr: expect.stringContaining(`${status} unexpected_answer`) });
    expect(run.stderr).toContain('Sent 0 events in 0 jobs');
  });

  it('is not what was only checked, nor checked what was sent', async () => {
    answers = [receipt(undefined, 200)];
    expect(await emit([line(1)])).toMatchObject({ code: 1 });
    answers = [receipt(undefined, 202)];
    expect(await emit([line(1)], { args: ['--dry-run'] })).toMatchObject({ code: 1 });
  });

  it('is asked for again when the answer is cut off', async () => {
    const cutOff: Respond = (response) => {
      response.writeHead(202, { 'content-length': 100 }).write('{"accepted":1');
      setImmediate(() => response.destroy());
    };
    answers = [cutOff, receipt()];
    expect(await emit([line(1)])).toMatchObject({ code: 0, stdout: 'Sent 1 event in 1 job, up to line 1.\n' });
  });

  it('is known of each account, also when the next one is not allowed', async () => {
    answers = [
      receipt(({ eventId }) => eventId === 'event-2'),
      answer(403, { code: 403, error: 'forbidden', message: 'Access denied.', requestId: 'r' }),
    ];
    const run = await emit([line(1, 'a'), line(2, 'a'), line(3, 'b')]);
    expect(run.code).toBe(3);
    expect(run.stderr).toMatch(
      /^standard input:2: no_price: there is none\nSent 1 event in 1 job, .*\nmeterline: .*Access denied/,
    );
  });
});

describe('a body that is too large', () => {
  it('is halved until it is not, and an event that is too large alone is a rejected line', async () => {
    const isTooLarge = ({ eventId }: Event) => eventId === 'event-3';
    answers = [
      (response, events, request) => {
        if (events.some(isTooLarge))
          answer(413, { code: 413, error: 'body_too_large', message: 'The body may have 5 bytes.', requestId: 'r' })(
            response,
            events,
            request,
          );
        else receipt()(response, events, request);
      },
    ];
    const run = await emit([1, 2, 3, 4, 5, 6, 7].map((n) => line(n)));
    expect(run).toMatchObject({
      code: 5,
      stdout: expect.stringMatching(/^Sent 6 events in \d jobs, up to line 7\.\n$/),
    });
    expect(run.stderr).toContain('standard input:3: too large: The body may have 5 bytes.\n');
  });
});

describe('how long it waits', () => {
  it('is not more than half a minute: it fails at once', async () => {
    const busy = { code: 429, error: 'rate_limited', message: 'Slowly.', requestId: 'r' };
    answers = [answer(429, busy, { 'retry-after': '120' })];
    expect(await emit([line(1)])).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('Slowly. (429 rate_limited'),
    });
    expect(requests).toHaveLength(1);
  });

  it.each([
    ['for an answer', () => undefined],
    ['to send again', answer(503, {}, { 'retry-after': '25' })],
  ] as const)('%s ends with Ctrl-C', async (_what, respond: Respond) => {
    let arrived = () => {};
    const interruptOn = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    answers = [
      (...request) => {
        respond(...request);
        setImmediate(arrived);
      },
    ];
    const run = await emit([line(1)], { interruptOn });
    expect(run).toMatchObject({ code: 1, stderr: expect.stringMatching(/^meterline: interrupted\. /) });
  });
});
