/** Every command of the guides, as it stands there, in a shell, against what `npm start` starts. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { watched } from '@meterline/local-stack';
import { z } from 'zod';
import { START, said } from '../harness/programs.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** What is run; ```console shows, and is not. */
const BLOCK = /^```(sh|js)\n(.*?)^```$/gms;

/**
 * npx takes a second to find what it is asked for. It is asked once, which shows that the command is found; then this does
 * what it would do.
 */
const NPX = `#!/bin/sh
if mkdir npx-was-asked 2>/dev/null; then PATH="\${PATH#*:}" exec npx "$@"; fi
exec "node_modules/.bin/$@"
`;

const addresses = z.object({ redisUrl: z.url() });

let directory: string;
let dataDir: string;
let stack: ChildProcess;
let redisUrl: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'meterline-guides-'));
  dataDir = join(directory, 'data');
  // As in a checkout: npx and imports find Meterline here.
  await symlink(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
  await mkdir(join(directory, 'bin'));
  await writeFile(join(directory, 'bin', 'npx'), NPX, { mode: 0o700 });
  const env = { ...process.env, METERLINE_DATA_DIR: dataDir, PORT: '', REDIS_URL: '', CLICKHOUSE_URL: '' };
  stack = spawn(...watched(process.execPath, [START]), { env, stdio: ['pipe', 'pipe', 'inherit'] });
  await said(stack, 'Meterline is running');
  ({ redisUrl } = addresses.parse(JSON.parse(await readFile(join(dataDir, 'local.json'), 'utf8'))));
});

afterAll(async () => {
  if (stack.exitCode === null) {
    const exited = once(stack, 'exit');
    stack.kill('SIGTERM');
    await exited;
  }
  await rm(directory, { recursive: true, force: true, maxRetries: 20 });
});

it.each([
  [
    'querying',
    [
      /^assistants +agent +\$/m,
      /^API +http:\/\/127/m,
      /^\/v0\/accounts\/\{accountId\}\/metrics$/m,
      /^All resources \$/m,
      /^403 forbidden [0-9a-f-]{36}$/m,
      /"expiresAt":"2099-12-31T00:00:00.000Z","lastUsedAt":"20[^"]*:00:00.000Z","revoked":false/,
    ],
  ],
  [
    'command-line',
    [
      /^API +http:\S+ \(login file: /m,
      /^ +member of demo$/m,
      /^Previous period: 2026-10-01T00:00:00Z to .*, 1 month earlier$/m,
      /^assistants +agent +chat +\$/m,
      /"summary":\{"totalCost":/,
      /^meterline: GET \/v0\/accounts\/demo\/metrics\S+: 200 in /m,
      /^complete -F __meterline_complete meterline$/m,
    ],
  ],
  [
    'finance',
    [
      /^Total/m,
      /^\uFEFF?workspace,resourceType,resourceName,billingDimension,startTime/m,
      /\$0\.12 per GB-month/,
      /\$2\.684/,
      /Nothing was written\./,
    ],
  ],
  [
    'emitting',
    [
      /agent_async_requests_count .*3 events/,
      /"status":"rejected","reason":"invalid_usage","message":"usage must be a whole number/,
      /(\{"accepted":2,"rejected":0,"results":\[\]\}.*){4}/s,
      /\{"accepted":1,"rejected":0,"results":\[\]\}/,
      /^everything is accepted: true$/m,
      /^missing_field /m,
      /^2 valid events\./m,
      /invalid_usage/,
      /No rejections\./,
    ],
  ],
  ['grafana', [/^clientId +grafana$/m]],
  [
    'onboarding',
    [
      /^tenant-1: a key of role member until 20/m,
      /^\{"id":"tenant-2","name":"Tenant Two","role":"provisioner"/m,
      /^KEY +ACCOUNT +ROLE.*tenant-1 +admin.*tenant-1 +member/ms,
    ],
  ],
  ['alerts', [/"forecastFired":\[\],"secret":"whsec_/]],
])('every command of the guide on %s works', async (guide, expected) => {
  const script = await scriptOf(guide);
  const { code, output } = await run(script);
  if (code !== 0) throw new Error(`exit code ${code}:\n${output}`);
  for (const pattern of expected) expect(output).toMatch(pattern);
});

/** The blocks one after another in one shell, which ends at the first that fails. */
async function scriptOf(guide: string): Promise<string> {
  const text = await readFile(join(ROOT, 'docs', 'guides', `${guide}.md`), 'utf8');
  const blocks = [...text.matchAll(BLOCK)].map(([, language = '', code = '']) => {
    return language === 'sh'
      ? code
      : `cat > program.mjs <<'END_OF_BLOCK'
${code}END_OF_BLOCK
node program.mjs
`;
  });
  expect(blocks.length).toBeGreaterThan(0);
  return `set -euxo pipefail\n${blocks.join('')}`;
}

async function run(script: string): Promise<{ code: unknown; output: string }> {
  const env = {
    PATH: `${join(directory, 'bin')}:${process.env.PATH}`,
    HOME: directory,
    METERLINE_DATA_DIR: dataDir,
    XDG_CONFIG_HOME: directory,
    REDIS_URL: redisUrl,
    npm_config_offline: 'true',
  };
  const child = spawn('bash', ['-c', script], { cwd: directory, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  }
  const [code] = await once(child, 'close');
  return { code, output };
}
