/** What others on this machine can do with the local servers: other users, and web pages. */
import { execFile } from 'node:child_process';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { type Servers, startServers } from './servers.js';

/** The usual uid of `nobody`. Only root can be another user for a moment; for others the modes of the files say the same. */
const NOBODY = 65_534;
const OTHER_USER = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : undefined;

let stack: Servers;
let secretFile: string;
let readSecret: string;
beforeAll(async () => {
  stack = await startServers();
  secretFile = stack.directory.file('keys.json');
  readSecret = `SELECT * FROM file('${secretFile}', LineAsString)`;
  await writeFile(secretFile, 'the admin key', { mode: 0o600 });
});
afterAll(() => stack.stop());

/** Node's fetch would set Host and Origin itself. */
async function ask(statement: string, headers: Record<string, string> = {}, path = '/') {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request(new URL(path, stack.clickhouse.url), { method: 'POST', headers, agent: false }, resolve);
    sent.once('error', reject).end(statement);
  });
  return { status: answer.statusCode, body: await text(answer) };
}

const basic = (user: string, password: string) => ({
  authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
});
const login = () => basic(stack.clickhouse.user, stack.clickhouse.password);

it.each([
  ['no credentials', {}],
  ['its own user', basic('default', '')],
  ['its own user in the other headers', { 'x-clickhouse-user': 'default' }],
  ['a wrong password', basic('meterline', 'wrong')],
  ['an empty password', basic('meterline', '')],
  ['a wrong password in the other headers', { 'x-clickhouse-user': 'meterline', 'x-clickhouse-key': 'x' }],
])('ClickHouse refuses a statement with %s', async (_, headers) => {
  const pages = ['/play', '/dashboard', '/replicas_status'];
  for (const path of ['/', '/?user=default', '/?us%65r=default&password=', '/?user=meterline', ...pages]) {
    const { status, body } = await ask(readSecret, headers, path);
    expect({ path, status, leaked: body.includes('admin key') }).toEqual({ path, status: 401, leaked: false });
  }
});

it("ClickHouse does not lend the engine's own user to who has a password", async () => {
  const { body } = await ask(readSecret, basic('query', stack.clickhouse.passwords.query), '/?user=default');
  expect(body).toMatch(/QUOTA_EXCEEDED/);
});

it('ClickHouse refuses what a web page can send, and a Host that is led to this machine', async () => {
  const written = stack.directory.file('written');
  const statement = `INSERT INTO FUNCTION file('${written}', LineAsString) VALUES ('by a page')`;
  const page = { 'content-type': 'text/plain' };
  for (const origin of ['https://example.com', stack.clickhouse.url, 'null']) {
    for (const known of [{}, login()]) {
      expect((await ask(statement, { ...page, ...known, origin })).status).toBe(403);
    }
  }
  expect((await ask(statement, page)).status).toBe(401);
  expect(await readdir(stack.directory.path)).not.toContain('written');

  const { port } = new URL(stack.clickhouse.url);
  const statusOf = async (host: string) => (await ask('SELECT 1', { ...login(), host })).status;
  for (const host of ['example.com', `example.com:${port}`, `localhost.example.com:${port}`]) {
    expect(await statusOf(host)).toBe(403);
  }
  expect(await statusOf(`localhost:${port}`)).toBe(200);
});

it('another user of the machine gets no file by ClickHouse, and none that has a password', async () => {
  const program = `
    const answer = await fetch(process.argv[1], { method: 'POST', body: process.argv[2] });
    console.log(answer.status, await answer.text());`;
  const as = { ...OTHER_USER, cwd: '/' };
  const args = ['--input-type=module', '-e', program, stack.clickhouse.url, readSecret];
  const { stdout } = await promisify(execFile)(process.execPath, args, as);
  expect(stdout).toMatch(/^401 /);
  expect(stdout).not.toContain('admin key');

  const { directory } = stack;
  const files = (await readdir(directory.path)).filter((name) => /secret|clickhouse-.*xml|redis\.conf/.test(name));
  expect(files).toHaveLength(4);
  for (const name of files) expect((await stat(directory.file(name))).mode & 0o077).toBe(0);
  if (!OTHER_USER) return;
  await expect(promisify(execFile)('cat', [directory.file('secret.json')], as)).rejects.toThrow('Permission denied');
});

it('no password is in the arguments of a process or in a log', async () => {
  const { clickhouse, redis, directory } = stack;
  const urls = Object.values(redis.urls).map((url) => new URL(url).password);
  const passwords = [directory.secret, ...Object.values(clickhouse.passwords), ...urls];
  const args = [clickhouse.pid, redis.pid].map((pid) => `/proc/${pid}/cmdline`);
  for (const file of [clickhouse.logFile, redis.logFile, ...(process.platform === 'linux' ? args : [])]) {
    const content = await readFile(file, 'utf8');
    for (const password of passwords) expect(content).not.toContain(password);
  }
});
