/** What others on this machine can do with the local servers: other users, and web pages. */
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Servers, startServers } from './servers.js';

/** The usual uid of `nobody`. */
const NOBODY = 65_534;
/** Only root can be another user for a moment; for others the credentials and the modes of the files say the same. */
const OTHER_USER = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : undefined;

let dataDir: string;
let stack: Servers;
let secretFile: string;
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'meterline-confined-'));
  stack = await startServers({ dataDir });
  secretFile = join(dataDir, 'keys.json');
  await writeFile(secretFile, 'the admin key', { mode: 0o600 });
});
afterAll(async () => {
  await stack.stop();
  await rm(dataDir, { recursive: true });
});

interface Asked {
  readonly status: number | undefined;
  readonly body: string;
}

/** Node's fetch would set Host and Origin itself. */
async function ask(statement: string, headers: Record<string, string> = {}, path = '/'): Promise<Asked> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request(new URL(path, stack.clickhouse.url), { method: 'POST', headers, agent: false }, resolve);
    sent.once('error', reject).end(statement);
  });
  return { status: answer.statusCode, body: await text(answer) };
}

function basic(user: string, password: string) {
  return { authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` };
}

const login = () => basic(stack.clickhouse.user, stack.clickhouse.password);

const readFileBy = (name: string) => `SELECT * FROM file('${name}', LineAsString)`;

describe('ClickHouse without the password', () => {
  it.each([
    ['no credentials', {}],
    ['its own user', basic('default', '')],
    ['its own user in the other headers', { 'x-clickhouse-user': 'default' }],
    ['a wrong password', basic('meterline', 'wrong')],
    ['an empty password', basic('meterline', '')],
    ['a wrong password in the other headers', { 'x-clickhouse-user': 'meterline', 'x-clickhouse-key': 'x' }],
  ])('refuses a statement with %s', async (_, headers) => {
    const pages = ['/play', '/dashboard', '/replicas_status'];
    for (const path of ['/', '/?user=default', '/?us%65r=default&password=', '/?user=meterline', ...pages]) {
      const { status, body } = await ask(readFileBy(secretFile), headers, path);
      expect({ path, status, leaked: body.includes('admin key') }).toEqual({ path, status: 401, leaked: false });
    }
  });

  it('refuses the simple request that a page of another origin can send, and writes nothing', async () => {
    const file = join(dataDir, 'written');
    const statement = `INSERT INTO FUNCTION file('${file}', LineAsString) VALUES ('by a page')`;
    const page = { 'content-type': 'text/plain', origin: 'https://example.com' };
    const own = { ...page, origin: stack.clickhouse.url };
    for (const origin of [page, own, { ...page, origin: 'null' }, { ...page, ...login() }]) {
      expect((await ask(statement, origin)).status).toBe(403);
    }
    expect((await ask(statement, { 'content-type': 'text/plain' })).status).toBe(401);
    expect(await readdir(dataDir)).not.toContain('written');
  });

  it('refuses a Host that is not this machine, as a page sends that had its name resolved to it', async () => {
    const { port } = new URL(stack.clickhouse.url);
    for (const host of ['example.com', `example.com:${port}`, `localhost.example.com:${port}`]) {
      expect((await ask('SELECT 1', { ...login(), host })).status).toBe(403);
    }
    expect((await ask('SELECT 1', { ...login(), host: `localhost:${port}` })).status).toBe(200);
  });

  it('keeps a file from another user of the machine', async () => {
    const program = `
      const answer = await fetch(process.argv[1], { method: 'POST', body: process.argv[2] });
      console.log(answer.status, await answer.text());`;
    const args = ['--input-type=module', '-e', program, stack.clickhouse.url, readFileBy(secretFile)];
    const { stdout } = await promisify(execFile)(process.execPath, args, { ...OTHER_USER, cwd: '/' });
    expect(stdout).toMatch(/^401 /);
    expect(stdout).not.toContain('admin key');
    const passwordFile = join(dataDir, 'secret.json');
    expect((await stat(passwordFile)).mode & 0o077).toBe(0);
    if (!OTHER_USER) return;
    await expect(promisify(execFile)('cat', [passwordFile], { ...OTHER_USER, cwd: '/' })).rejects.toThrow(
      'Permission denied',
    );
  });
});

it("ClickHouse with a password does not lend the engine's own user", async () => {
  const { body } = await ask(
    readFileBy(secretFile),
    basic('query', stack.clickhouse.passwords.query),
    '/?user=default',
  );
  expect(body).toMatch(/QUOTA_EXCEEDED/);
});

it('Redis without the password refuses everything', async () => {
  const socket = connect(stack.redis.port, '127.0.0.1');
  socket.end('PING\r\nKEYS *\r\nSET a b\r\nCONFIG GET requirepass\r\nQUIT\r\n');
  const answers = (await text(socket)).trimEnd().split('\r\n');
  expect(answers.slice(0, 4)).toEqual(Array(4).fill(expect.stringMatching(/^-NOAUTH /)));
});

it('no password is in the arguments of a process or in a log, and only the owner reads the files that have them', async () => {
  const { clickhouse, redis } = stack;
  const passwords = [
    ...Object.values(clickhouse.passwords),
    ...Object.values(redis.urls).map((url) => new URL(url).password),
  ];
  passwords.push(clickhouse.secret);
  const open = [`/proc/${clickhouse.pid}/cmdline`, `/proc/${redis.pid}/cmdline`, clickhouse.logFile, redis.logFile];
  for (const file of process.platform === 'linux' ? open : open.slice(2)) {
    const content = await readFile(file, 'utf8');
    for (const password of passwords) expect(content).not.toContain(password);
  }
  const files = (await readdir(dataDir)).filter((name) => /secret|clickhouse-.*xml|redis\.conf/.test(name));
  expect(files).toHaveLength(4);
  for (const name of files) expect((await stat(join(dataDir, name))).mode & 0o077).toBe(0);
});
