/** The examples in Python and Go, where these are installed, before a collector that does not answer as it should. */
import { spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { parseUsageEvent } from '@meterline/catalog';
import { json, type Respond, serve } from '../harness/serving.js';
import { testFolder } from '../harness/test-folder.js';

const EXAMPLES = fileURLToPath(new URL('../../examples', import.meta.url));

const LANGUAGES = ['python', 'go'] as const;
type Language = (typeof LANGUAGES)[number];

const isInstalled: Readonly<Record<Language, boolean>> = {
  python: spawnSync('python3', ['--version']).status === 0,
  go: spawnSync('go', ['version']).status === 0,
};

const folder = testFolder();

beforeAll(() => {
  if (!isInstalled.go) return;
  const env = { PATH: process.env['PATH'], HOME: folder() };
  const build = spawnSync('go', ['build', '-o', folder('send'), join(EXAMPLES, 'send.go')], {
    env,
    encoding: 'utf8',
  });
  expect(build.stderr).toBe('');
});

/** @returns how it ends, all that it says, and what it sends to a server that gives these responses */
async function run(language: Language, ...responses: readonly Respond[]) {
  const { url, requests } = await serve(...responses);
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
  return { code, output: printed + told, requests };
}

const ACCEPTED = { accepted: 1, rejected: 0, results: [] };
const REJECTED = {
  accepted: 0,
  rejected: 1,
  results: [{ index: 0, status: 'rejected', reason: 'no_price', message: 'there is none' }],
};

describe.each(LANGUAGES)('the program in %s', (language) => {
  const inIt = isInstalled[language] ? it : it.skip;

  inIt('the example sends the same again until there is a whole response, and then ends', async () => {
    const { code, requests } = await run(
      language,
      (response) => {
        response.writeHead(202, { 'content-length': 500 }).write('{"accepted":1', () => response.destroy());
      },
      (response) => response.destroy(),
      json(503, '', { 'retry-after': new Date().toUTCString() }),
      json(429, '', { 'retry-after': '0' }),
      json(408, '', { 'retry-after': '0' }),
      json(202, ACCEPTED),
    );
    expect([code, requests.length, new Set(requests.map(({ body }) => body)).size]).toEqual([0, 6, 1]);
    // The collector adds the account of its address, and makes a UUID of any id.
    for (const event of JSON.parse(requests[0]?.body ?? '')) {
      expect(parseUsageEvent({ ...event, accountId: 'guide', eventId: randomUUID() }, Date.now())).toMatchObject({
        ok: true,
      });
    }
    const targets = new Set(requests.map(({ method, url }) => `${method} ${url}`));
    expect([...targets]).toEqual(['POST /v0/events']);
  });

  inIt.each([302, 308, 403, 404])('the example fails at a %d, which sending again does not change', async (status) => {
    const moved = json(status, '', { location: '/elsewhere' });
    const { code, output, requests } = await run(language, moved, json(200, ACCEPTED));
    expect([code, requests.length]).toEqual([1, 1]);
    expect(output).toContain(String(status));
  });

  inIt('the example says why an event is rejected, and does not send it again', async () => {
    const { output, requests } = await run(language, json(400, REJECTED));
    expect(output).toContain('no_price');
    expect(requests).toHaveLength(1);
  });
});
