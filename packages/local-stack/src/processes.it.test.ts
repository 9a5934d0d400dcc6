/** Tests the data directory, its processes, and their programs. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { testFolder } from '../../../test/harness/test-folder.js';
import { findEngineLibrary } from './clickhouse.js';
import { DataDirectory, readPrivateFile, writePrivateFile } from './data-directory.js';
import { ensureRedisServer } from './redis.js';
import { ENGINE_PROGRAM, startServer, watched } from './server-process.js';

const folder = testFolder('each test');

const modeOf = async (path: string) => (await stat(path)).mode & 0o777;

it('after the owner of a data directory is killed, its child process keeps the lock until it ends', async () => {
  const code = `import { spawn } from 'node:child_process';
    import { DataDirectory } from '${new URL('../dist/data-directory.js', import.meta.url)}';
    const { lock } = await DataDirectory.open(process.argv[1]);
    const { pid } = spawn('sleep', ['60'], { stdio: ['ignore', 'ignore', 'ignore', lock], detached: true });
    console.log(pid);
    process.kill(process.pid, 'SIGKILL');`;
  const args = ['--input-type=module', '-e', code, folder()];
  const { stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  const taking = DataDirectory.open(folder());
  expect(await Promise.race([taking, sleep(200, 'waiting')])).toBe('waiting');
  process.kill(Number(stdout), 'SIGKILL');
  (await taking).close();
});

it('exactly one of several concurrent processes locks a data directory, and another can after its release', async () => {
  const rivals = await Promise.allSettled(Array.from({ length: 8 }, () => DataDirectory.open(folder())));
  const [winner, ...others] = rivals.flatMap((rival) => (rival.status === 'fulfilled' ? [rival.value] : []));
  expect(others).toEqual([]);
  winner?.close();
  winner?.close();
  const second = await DataDirectory.open(folder());
  expect(second.secret).toBe(winner?.secret);
  second.close();
});

it('a data directory and its parents are created if missing, with access only for the owner', async () => {
  const path = folder('a', 'b');
  for (let time = 0; time < 2; time += 1) (await DataDirectory.open(path)).close();
  expect(await readdir(path)).toEqual(['secret.json', 'stack.lock']);
  expect([await modeOf(path), await modeOf(`${path}/secret.json`)]).toEqual([0o700, 0o600]);
});

it.each([
  ['a file', 'file', 'EEXIST'],
  ['below a file', 'file/below', 'ENOTDIR'],
  ['a name that is too long', 'x'.repeat(300), 'ENAMETOOLONG'],
])('a data directory cannot be %s, and the message has the reason', async (_what, name, reason) => {
  await writeFile(folder('file'), '');
  const path = folder(name);
  await expect(DataDirectory.open(path)).rejects.toThrow(
    new RegExp(`^${path} cannot store the data \\(${reason}.*METERLINE_DATA_DIR to a writable directory\\.$`),
  );
});

const schema = z.object({ secret: z.string() });

it('a private file is readable only by its owner, and undefined before it is written', async () => {
  const path = folder('whole.json');
  expect(await readPrivateFile(path, schema)).toBeUndefined();
  await writePrivateFile(path, { secret: 'x' });
  expect(await readPrivateFile(path, schema)).toEqual({ secret: 'x' });
  expect(await modeOf(path)).toBe(0o600);
});

it.each([
  ['is empty', '', 'Unexpected end of JSON input'],
  ['is cut off', '{"secret', 'Unterminated string in JSON'],
  ['does not match the schema', '{"secret":7}', 'secret: Invalid input: expected string, received number'],
])('the error for a private file that %s has its name and a fix', async (_what, content, reason) => {
  const path = folder('damaged.json');
  await writeFile(path, content);
  await expect(readPrivateFile(path, schema)).rejects.toThrow(
    new RegExp(`^${path} is damaged \\(${reason}.*Fix or delete it; the next start creates a new one\\.$`),
  );
});

describe('a process in the data directory', () => {
  let directory: DataDirectory;
  beforeEach(async () => {
    directory = await DataDirectory.open(folder());
  });
  afterEach(() => directory.close());

  /** Starts a program that is ready immediately or never. */
  function start(program: string, { isReady = false, ...limits }: { isReady?: boolean; readyTimeoutMs?: number } = {}) {
    return startServer(directory, {
      ...{ name: 'The ingest service', label: 'ingest', args: ['-e', program], url: '' },
      isReady: () => (isReady ? Promise.resolve() : Promise.reject(new Error('no response'))),
      ...limits,
    });
  }

  it.each([
    [
      ['{"level":30}', 'meterline-ingest: LOG_LEVEL must be loud', 'meterline-ingest: PORT must be a port'],
      'LOG_LEVEL must be loud; PORT must be a port',
    ],
    [['meterline-ingest: a thing', 'Error: a defect', '    at somewhere'], undefined],
    [[], undefined],
  ])('the error for a process that ends early has its start errors or its log: %j', async (lines, startErrors) => {
    const text = lines.map((line) => `${line}\n`).join('');
    const log = folder('ingest.log');
    const quoted = `The ingest service ended before it was ready (exit code 1). The end of ${log}:\n${lines.join('\n')}`;
    const failing = start(`process.stderr.write(${JSON.stringify(text)}); process.exitCode = 1`);
    await expect(failing).rejects.toMatchObject({ name: 'LocalStackError', message: startErrors ?? quoted });
  });

  it('a process that does not become ready is killed after the timeout', async () => {
    const hanging = start('setInterval(() => {}, 1000)', { readyTimeoutMs: 50 });
    await expect(hanging).rejects.toThrow('The ingest service was not ready within 0.05 s');
  });

  it('a log that is too long is renamed at the next start', async () => {
    const log = folder('ingest.log');
    await writeFile(log, '');
    await truncate(log, 30 * 1024 * 1024);
    const server = await start('setInterval(() => console.log("new"), 10)', { isReady: true });
    while (!(await readFile(log, 'utf8')).includes('new'));
    await server.kill();
    expect((await stat(`${log}.1`)).size).toBe(30 * 1024 * 1024);
  });
});

it('a process that ignores SIGTERM is killed after its parent has ended', async () => {
  const program =
    "process.on('SIGTERM', () => console.log('SIGTERM')); setInterval(() => {}, 1000); console.log('runs')";
  const child = spawn(...watched(process.execPath, ['-e', program]));
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  expect(await lines.next()).toMatchObject({ value: 'runs' });
  child.stdin.end();
  expect(await lines.next()).toMatchObject({ value: 'SIGTERM' });
  expect(await once(child, 'exit')).toEqual([null, 'SIGKILL']);
}, 60_000);

const SHELL = '/bin/sh';

const program = (name: string, script: string) => writeFile(folder(name), `#!${SHELL}\n${script}\n`, { mode: 0o755 });

it('findEngineLibrary returns an existing library, or throws an error with a fix', () => {
  expect(existsSync(findEngineLibrary())).toBe(true);
  const message = /^chdb: .*\. The embedded ClickHouse supports macOS, and Linux.* set CLICKHOUSE_URL to .*\.$/;
  expect(() => findEngineLibrary({ CHDB_LIBCHDB_PATH: '/nowhere' })).toThrow(message);
});

it('the engine ends with a message if the disk has too little free space', () => {
  const args = [ENGINE_PROGRAM, 'no-library', '1e18'];
  const { signal, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  expect(signal).toBe('SIGKILL');
  expect(stderr).toMatch(
    /^The disk of \/.* has \d+ MiB left\. The embedded ClickHouse needs 953674316406 MiB and stops to prevent data loss\. Free some space\.\n$/,
  );
});

it.each(['brew', 'apt-get'])(
  'redis-server is installed with %s, with a message, if it is not on PATH',
  async (tool) => {
    const server = folder('redis-server');
    const said: string[] = [];
    const ensure = () => ensureRedisServer({ env: { PATH: folder() }, say: (line) => said.push(line) });
    await program(tool, `printf '#!${SHELL}\\necho Redis server v=8.0.1\\n' > ${server}; /bin/chmod +x ${server}`);
    await program('env', 'shift 2; exec "$@"');
    await program('sudo', 'shift; "$@"');
    await program('systemctl', `echo "$@" >> ${folder('told')}`);
    expect(await ensure()).toBe(server);
    expect(await ensure()).toBe(server);
    expect(said).toEqual([`Installing redis-server with ${tool}…`]);
    // The Debian package starts Redis.
    if (tool === 'apt-get') expect(await readFile(folder('told'), 'utf8')).toBe('disable --now redis-server\n');
  },
);

it.each([
  ['installs the package without updating its lists', 'lists', ['install']],
  ['updates its lists and retries if the package is not found', 'no-lists', ['install', 'update', 'install']],
])('apt-get %s', async (_, lists, commands) => {
  const server = folder('redis-server');
  await writeFile(folder(lists), '');
  await program(
    'apt-get',
    `for word in "$@"; do case "$word" in install | update) command=$word ;; esac; done
    echo $command >> ${folder('commands')}
    if [ $command = update ]; then : > ${folder('lists')}; exit; fi
    if [ ! -e ${folder('lists')} ]; then echo 'E: Unable to locate package' >&2; exit 100; fi
    printf '#!${SHELL}\\necho Redis server v=8.0.1\\n' > ${server}; /bin/chmod +x ${server}`,
  );
  await program('env', 'shift 2; exec "$@"');
  await program('sudo', 'shift; "$@"');
  expect(await ensureRedisServer({ env: { PATH: folder() } })).toBe(server);
  expect((await readFile(folder('commands'), 'utf8')).trim().split('\n')).toEqual(commands);
});

const FIX = 'install Redis 7 or newer so that redis-server is on PATH, or set REDIS_URL to your own server.';

it.each([
  ['is missing', '', '', 'redis-server is not on PATH'],
  ['is too old', 'redis-server', 'echo "Redis server v=6.2.16 sha=0"', 'is version 6.2'],
  ['cannot run', 'redis-server', 'exit 1', 'redis-server --version)'],
  ['cannot be installed', 'brew', 'echo "no network" >&2; exit 1', 'brew could not install redis-server (no network)'],
])('the error for a redis-server that %s has a fix', async (_, name, script, problem) => {
  if (name !== '') await program(name, script);
  await expect(ensureRedisServer({ env: { PATH: folder() } })).rejects.toThrow(`${problem}: ${FIX}`);
});
