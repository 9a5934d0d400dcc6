/** What others on this machine can do with the local servers: other users, web pages, and programs with the password. */
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { canLimitFileAccess } from '../../hosts/file-access.js';
import { type LocalStack, startLocalStack } from './local-stack.js';

/** The usual uid of `nobody`. */
const NOBODY = 65_534;
/** Only root can be another user for a moment; for others the credentials and the modes of the files say the same. */
const OTHER_USER = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : undefined;
/** Linux 5.19 and newer, unless Landlock is turned off. */
const whereFilesAreConfined = canLimitFileAccess() ? describe : describe.skip;

let dataDir: string;
let stack: LocalStack;
let secretFile: string;
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'meterline-confined-'));
  stack = await startLocalStack({ dataDir });
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
  ])('refuses a statement with %s', async (_, headers) => {
    for (const path of ['/', '/?user=default', '/?us%65r=default&password=', '/play', '/?user=meterline']) {
      const { status, body } = await ask(readFileBy(secretFile), headers, path);
      expect({ path, status, leaked: body.includes('admin key') }).toEqual({ path, status: 401, leaked: false });
    }
  });

  it('refuses the simple request that a page of another origin can send, and writes nothing', async () => {
    const file = join(dataDir, 'written');
    const statement = `INSERT INTO FUNCTION file('${file}', LineAsString) VALUES ('by a page')`;
    const page = { 'content-type': 'text/plain', origin: 'https://example.com' };
    for (const origin of [page, { ...page, origin: 'null' }, { ...page, ...login() }]) {
      expect((await ask(statement, origin)).status).toBe(403);
    }
    expect((await ask(statement, { 'content-type': 'text/plain' })).status).toBe(401);
    expect(await readdir(dataDir)).not.toContain('written');
  });

  it('refuses a Host that is not this machine, as a page sends that had its name resolved to it', async () => {
    const { port } = new URL(stack.clickhouse.url);
    expect((await ask('SELECT 1', { ...login(), host: `example.com:${port}` })).status).toBe(403);
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
    const passwordFile = join(dataDir, 'clickhouse-password.json');
    expect((await stat(passwordFile)).mode & 0o077).toBe(0);
    if (!OTHER_USER) return;
    await expect(promisify(execFile)('cat', [passwordFile], { ...OTHER_USER, cwd: '/' })).rejects.toThrow(
      'Permission denied',
    );
  });
});

describe('ClickHouse with the password', () => {
  it.each([
    ['file()', () => readFileBy(secretFile)],
    ['writing with file()', () => `INSERT INTO FUNCTION file('${dataDir}/written', LineAsString) VALUES ('x')`],
    ['url()', () => "SELECT * FROM url('http://127.0.0.1:1/', LineAsString)"],
    ['remote()', () => "SELECT * FROM remote('127.0.0.1', system.one)"],
    ['the table engine File', () => `CREATE TABLE default.f (x String) ENGINE = File(LineAsString, '${secretFile}')`],
    ['a database of a folder', () => `CREATE DATABASE folder ENGINE = Filesystem('${dataDir}')`],
    [
      'a dictionary',
      () => "CREATE DICTIONARY default.d (x UInt64) PRIMARY KEY x SOURCE(FILE(path '/' format 'TSV')) LAYOUT(FLAT())",
    ],
    ['a backup', () => `BACKUP DATABASE default TO File('${dataDir}/backup')`],
    ['a shutdown', () => 'SYSTEM SHUTDOWN'],
    ['another port', () => 'SYSTEM START LISTEN TCP'],
    ['another user', () => 'CREATE USER guest'],
  ])('refuses %s', async (_, statement) => {
    expect((await ask(statement(), login())).body).toMatch(/\(ACCESS_DENIED\)/);
  });

  it("does not lend the engine's own user", async () => {
    const { body } = await ask(readFileBy(secretFile), login(), '/?user=default');
    expect(body).toMatch(/QUOTA_EXCEEDED/);
  });
});

whereFilesAreConfined('INSERT … FROM INFILE, where Linux has Landlock', () => {
  const insert = (file: string) => ask(`INSERT INTO default.files FROM INFILE '${file}' FORMAT LineAsString`, login());
  beforeAll(async () => {
    expect((await ask('CREATE TABLE default.files (line String) ENGINE = Log', login())).status).toBe(200);
  });

  it.each([
    ['a file of the data directory', () => secretFile],
    ['a password', () => join(dataDir, 'clickhouse-ingest-password.json')],
    ['a file of the system', () => '/etc/passwd'],
    ['the variables of another process', () => `/proc/${process.pid}/environ`],
    ['its own program', () => fileURLToPath(new URL('../../hosts/engine.js', import.meta.url))],
  ])('cannot read %s', async (_, file) => {
    expect((await insert(file())).body).toMatch(/Permission denied.*\(CANNOT_OPEN_FILE\)/);
  });

  it('finds no password in what the engine may read', async () => {
    expect((await insert(join(dataDir, 'clickhouse-config.xml'))).body).toMatch(/\(FILE_DOESNT_EXIST\)/);
    for (const file of [join(dataDir, 'clickhouse-users.xml'), '/proc/self/environ', '/proc/self/cmdline']) {
      expect((await insert(file)).status).toBe(200);
    }
    const { body } = await ask('SELECT * FROM default.files', login());
    expect(body).toContain('<password_sha256_hex>');
    for (const password of Object.values(stack.clickhouse.passwords)) expect(body).not.toContain(password);
    expect(body).not.toContain('METERLINE_TEST');
  });
});

it('Redis without the password refuses everything', async () => {
  const socket = connect(stack.redis.port, '127.0.0.1');
  socket.end('PING\r\nKEYS *\r\nSET a b\r\nCONFIG GET requirepass\r\nQUIT\r\n');
  const answers = (await text(socket)).trimEnd().split('\r\n');
  expect(answers.slice(0, 4)).toEqual(Array(4).fill(expect.stringMatching(/^-NOAUTH /)));
});

it('no password is in the arguments of a process or in a log, and only the owner reads the files that have them', async () => {
  const { clickhouse, redis } = stack;
  const passwords = [...Object.values(clickhouse.passwords), new URL(redis.url).password];
  const open = [`/proc/${clickhouse.pid}/cmdline`, `/proc/${redis.pid}/cmdline`, clickhouse.logFile, redis.logFile];
  for (const file of process.platform === 'linux' ? open : open.slice(2)) {
    const content = await readFile(file, 'utf8');
    for (const password of passwords) expect(content).not.toContain(password);
  }
  const files = (await readdir(dataDir)).filter((name) => /password|config|users|redis\.conf/.test(name));
  expect(files.length).toBeGreaterThan(4);
  for (const name of files) expect((await stat(join(dataDir, name))).mode & 0o077).toBe(0);
});

it('data of a version without passwords stay readable', async () => {
  expect((await ask('CREATE DATABASE earlier', login())).status).toBe(200);
  await stack.stop();
  for (const name of await readdir(dataDir)) {
    if (/^(clickhouse|redis)[-.].*(password|users|conf)/.test(name)) await rm(join(dataDir, name));
  }
  const before = stack.clickhouse.password;
  stack = await startLocalStack({ dataDir });
  expect(stack.clickhouse.password).not.toBe(before);
  expect((await ask("SELECT name FROM system.databases WHERE name = 'earlier'", login())).body).toBe('earlier\n');
});
