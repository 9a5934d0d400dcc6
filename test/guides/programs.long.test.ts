/** The examples in Python and Go, where these are installed, before a collector that does not answer as it should. */
import { spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { parseUsageEvent } from '@meterline/catalog';
import { listening } from '../harness/listening.js';
import { testFolder } from '../harness/test-folder.js';

jest.setTimeout(300_000);

const EXAMPLES = fileURLToPath(new URL('../../examples', import.meta.url));

type Behaviour = (response: ServerResponse) => void;

const LANGUAGES = ['python', 'go'] as const;
type Language = (typeof LANGUAGES)[number];

const isInstalled: Readonly<Record<Language, boolean>> = {
  python: spawnSync('python3', ['--version']).status === 0,
  go: spawnSync('go', ['version']).status === 0,
};

const folder = testFolder();
let server: Server;
let behaviours: Behaviour[];
let bodies: string[];
let targets: Set<string>;

beforeAll(() => {
  if (!isInstalled.go) return;
  const env = { PATH: process.env['PATH'], HOME: folder() };
  const build = spawnSync('go', ['build', '-o', folder('send'), join(EXAMPLES, 'send.go')], {
    env,
    encoding: 'utf8',
  });
  expect(build.stderr).toBe('');
});

beforeEach(() => {
  bodies = [];
  targets = new Set();
  server = createServer(async (request, response) => {
    targets.add(`${request.method} ${request.url}`);
    bodies.push(await text(request));
    behaviours.shift()?.(response);
  });
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

/** @returns how it ends, and all that it says */
async function run(language: Language) {
  const url = await listening(server);
  const [command, args] = language === 'go' ? [folder('send'), []] : ['python3', [join(EXAMPLES, 'send.py')]];
  const program = spawn(command, args, {
    env: { PATH: process.env['PATH'], COLLECTOR_URL: url, METERLINE_EMITTER_KEY: 'mlk_guide' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [printed, told, [code]] = await Promise.all([
    text(program.stdout),
    text(program.stderr),
    once(program, 'close'),
  ]);
  return { code, output: printed + told };
}

const behaviour =
  (status: number, headers: Readonly<Record<string, string>>, body: unknown = ''): Behaviour =>
  (response) =>
    void response.writeHead(status, headers).end(JSON.stringify(body));

const ACCEPTED = { accepted: 1, rejected: 0, results: [{ index: 0, status: 'accepted' }] };
const REJECTED = {
  accepted: 0,
  rejected: 1,
  results: [{ index: 0, status: 'rejected', reason: 'no_price', message: 'there is none' }],
};

describe.each(LANGUAGES)('the program in %s', (language) => {
  const inIt = isInstalled[language] ? it : it.skip;

  inIt('the example sends the same again until there is a whole response, and then ends', async () => {
    behaviours = [
      (response) => {
        response.writeHead(202, { 'content-length': 500 }).write('{"accepted":1');
        setTimeout(() => response.destroy(), 50);
      },
      (response) => void response.destroy(),
      behaviour(503, { 'retry-after': new Date().toUTCString() }),
      behaviour(429, { 'retry-after': '0' }),
      behaviour(408, { 'retry-after': '0' }),
      behaviour(202, {}, ACCEPTED),
    ];
    expect(await run(language)).toMatchObject({ code: 0 });
    expect([bodies.length, new Set(bodies).size]).toEqual([6, 1]);
    // The collector adds the account of its address, and makes a UUID of any id.
    for (const event of JSON.parse(bodies[0] ?? '')) {
      expect(parseUsageEvent({ ...event, accountId: 'guide', eventId: randomUUID() }, Date.now())).toMatchObject({
        ok: true,
      });
    }
    expect([...targets]).toEqual(['POST /v0/accounts/guide/events']);
  });

  inIt.each([302, 308, 403, 404])('the example fails at a %d, which sending again does not change', async (status) => {
    behaviours = [behaviour(status, { location: '/elsewhere' }), behaviour(200, {}, ACCEPTED)];
    const { code, output } = await run(language);
    expect([code, bodies.length]).toEqual([1, 1]);
    expect(output).toContain(String(status));
  });

  inIt('the example says why an event is rejected, and does not send it again', async () => {
    behaviours = [behaviour(400, {}, REJECTED)];
    expect((await run(language)).output).toContain('no_price');
    expect(bodies).toHaveLength(1);
  });
});
