/** Starts the services as processes, as in production: from their build, configured by environment variables. */
import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { NODE_OPTIONS, type RedisUser, redisUrlOf, watched } from '@meterline/local-stack';
import { listening } from './listening.js';
import { LIMIT_MS } from './waiting.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export type ServiceName = 'ingest' | 'query' | 'collector' | 'alerts';
export type ServiceEnvironment = Readonly<Record<string, string>>;
/** A line of a service's log, which is JSON. */
export type LogEntry = Readonly<Record<string, unknown>>;

interface ServiceExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface ServiceProcess {
  readonly pid: number;
  readonly child: ChildProcess;
  /** Everything written to standard output and standard error so far. */
  log(): string;
  /** The log entries so far. */
  entries(): readonly LogEntry[];
  /** The lines on standard error so far. */
  errorLines(): readonly string[];
  /** The first log entry that fits, past or future; rejects when the process ends without one. */
  entry(fits: (entry: LogEntry) => boolean): Promise<LogEntry>;
  /** Resolves, never rejects, when the process is gone and all its output has been read. */
  readonly exited: Promise<ServiceExit>;
  /** Sends SIGTERM and waits for the end. @returns the exit code; rejects when the process does not end in time */
  stop(): Promise<number | null>;
  /** Sends SIGKILL and waits for the end. */
  kill(): Promise<void>;
}

/** A service that answers HTTP. */
export interface HttpProcess extends ServiceProcess {
  readonly url: string;
}

/** Constants of a query process for tests and benches that ask more than a client may, and are not about that. */
export const UNLIMITED = {
  statements: 10,
  accountStatements: 10,
  callerStatements: 10,
  maxWaitMs: 60_000,
  maxWaiting: 10_000,
  statementMs: 120_000,
};
/** With these constants, and rates that nobody reaches. */
export const NO_LIMITS: ServiceEnvironment = {
  ACCOUNT_RATE: '100000',
  METERLINE_CONSTANTS: JSON.stringify(UNLIMITED),
};

const REDIS_USERS = {
  ingest: 'worker',
  query: 'query',
  collector: 'collector',
  alerts: 'alerts',
} as const satisfies Record<ServiceName, string>;

/** The environment of a process that has this user on a server of the local stack, as in production, where tests themselves are its admin. */
export function asRedisUser<E extends Readonly<Record<string, string>>>(env: E, user: RedisUser): E {
  const { REDIS_URL: url } = env;
  return url?.startsWith('redis://admin:') ? { ...env, REDIS_URL: redisUrlOf(url, user) } : env;
}

/** With the prefix of the queue of each. */
const running = new Map<ServiceProcess, string | undefined>();

/** The environment with these constants of the service, besides others that it has already. */
export function withConstants(
  env: ServiceEnvironment,
  constants: Readonly<Record<string, number>>,
): ServiceEnvironment {
  const known = JSON.parse(env.METERLINE_CONSTANTS ?? '{}');
  return { ...env, METERLINE_CONSTANTS: JSON.stringify({ ...known, ...constants }) };
}

/**
 * Starts a worker, which maintains no rollups unless its constants say so: tests of sealing turn it on, or seal themselves.
 * @param env added to PATH, HOME and TZ only, so that a developer's own variables change nothing
 */
export async function startIngest(env: ServiceEnvironment): Promise<ServiceProcess> {
  const constants = JSON.parse(env.METERLINE_CONSTANTS ?? '{}');
  const service = launchService('ingest', withConstants(env, { maintenanceEveryMs: 0, ...constants }));
  await ready('ingest', service, ({ event }) => event === 'started');
  return service;
}

/** Starts the query service on any free port. */
export async function startQuery(env: ServiceEnvironment): Promise<HttpProcess> {
  const service = launchService('query', { PORT: '0', ...balanced(env) });
  const { port } = await ready('query', service, ({ msg }) => msg === 'listening');
  return { ...service, url: `http://127.0.0.1:${port}` };
}

/** In front of the shards that all test files share, a query process has the address that leads to all of them. */
function balanced(env: ServiceEnvironment): ServiceEnvironment {
  const { METERLINE_TEST_BALANCER: balancer, METERLINE_TEST_CLICKHOUSE_URL: shared } = process.env;
  return balancer !== undefined && env.CLICKHOUSE_URL === shared ? { ...env, CLICKHOUSE_URL: balancer } : env;
}

/** Starts the collector on any free port. */
export async function startCollector(env: ServiceEnvironment): Promise<HttpProcess> {
  const service = launchService('collector', { PORT: '0', ...env });
  const { port } = await ready('collector', service, ({ msg }) => msg === 'listening');
  return { ...service, url: `http://127.0.0.1:${port}` };
}

/** Starts the alerts service, which may post to this machine, judges every fifth of a second and sends again at once. */
export async function startAlerts(env: ServiceEnvironment): Promise<ServiceProcess> {
  const constants = { evaluateEveryMs: 200, outboxEveryMs: 50, retryMs: 50 };
  const known = JSON.parse(env.METERLINE_CONSTANTS ?? '{}');
  const service = launchService('alerts', {
    ALERT_ALLOWED_HOSTS: '127.0.0.1',
    ...withConstants(env, { ...constants, ...known }),
  });
  await ready('alerts', service, ({ event }) => event === 'started');
  return service;
}

/**
 * Starts `services/<name>` without waiting until it is ready. The service ends when this process ends.
 * @param stdout a descriptor for its log, which is not read then
 */
export function launchService(
  name: ServiceName,
  env: ServiceEnvironment,
  stdout: number | 'pipe' = 'pipe',
): ServiceProcess {
  const child = spawn(...watched(process.execPath, [join('services', name, 'dist', 'main.js')]), {
    cwd: ROOT,
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      TZ: process.env.TZ,
      NODE_OPTIONS: NODE_OPTIONS[name],
      ...asRedisUser(env, REDIS_USERS[name]),
    },
    stdio: ['pipe', stdout, 'pipe'],
  });
  const output = readOutput(child);
  // A service that a failed test left running must not keep this process alive; it ends with this process.
  child.unref();
  const read = [child.stdout, child.stderr].map((stream) => stream && once(stream, 'close'));
  const exited = Promise.all([once(child, 'exit'), ...read]).then(
    ([[code, signal]]): ServiceExit => ({ code, signal }),
  );
  const service: ServiceProcess = {
    pid: child.pid ?? 0,
    child,
    log: () => output.lines.join('\n'),
    entries: output.entries,
    errorLines: () => output.errorLines,
    entry: (fits) => Promise.race([output.entry(fits), exited.then((exit) => endedEarly(name, exit, service))]),
    exited,
    stop: () => stop(name, child, exited),
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
  running.set(service, env.QUEUE_PREFIX);
  void exited.then(() => running.delete(service));
  return service;
}

/** Kills every service that is still running, or those of a queue: a failed test may leave one. */
export async function killServices(ofPrefix?: string): Promise<void> {
  const own = [...running].filter(([, prefix]) => ofPrefix === undefined || prefix === ofPrefix);
  await Promise.all(own.map(([service]) => service.kill()));
}

async function ready(name: ServiceName, service: ServiceProcess, fits: (entry: LogEntry) => boolean) {
  const deadline = setTimeout(() => void service.kill(), LIMIT_MS);
  try {
    return await service.entry(fits);
  } catch (error) {
    throw new Error(`${name} was not ready`, { cause: error });
  } finally {
    clearTimeout(deadline);
  }
}

function readOutput({ stdin, stdout, stderr }: ChildProcess) {
  if (!stderr) throw new Error('a service is started with a pipe');
  for (const stream of [stdin, stdout, stderr]) if (stream instanceof Socket) stream.unref();
  const lines: string[] = [];
  const unparsed: string[] = [];
  const parsed: LogEntry[] = [];
  const errorLines: string[] = [];
  const news = new EventEmitter().setMaxListeners(0);
  if (stdout) {
    createInterface(stdout).on('line', (line) => {
      lines.push(line);
      unparsed.push(line);
      news.emit('entry');
    });
  }
  // Parsed when somebody asks: a bench has a line for each of thousands of requests, and nobody does.
  const entries = () => {
    parsed.push(...unparsed.splice(0).map(parseEntry));
    return parsed;
  };
  createInterface(stderr).on('line', (line) => {
    lines.push(line);
    errorLines.push(line);
  });
  const entry = async (fits: (entry: LogEntry) => boolean): Promise<LogEntry> => {
    for (;;) {
      const found = entries().find(fits);
      if (found) return found;
      await once(news, 'entry');
    }
  };
  return { lines, entries, errorLines, entry };
}

function parseEntry(line: string): LogEntry {
  try {
    return JSON.parse(line);
  } catch {
    return { msg: line };
  }
}

function endedEarly(name: ServiceName, { code, signal }: ServiceExit, service: ServiceProcess): never {
  throw new Error(`${name} ended with ${signal ?? code}:\n${service.log()}`);
}

async function stop(name: ServiceName, child: ChildProcess, exited: Promise<ServiceExit>): Promise<number | null> {
  let late = false;
  const deadline = setTimeout(() => {
    late = true;
    child.kill('SIGKILL');
  }, LIMIT_MS);
  child.kill('SIGTERM');
  const { code } = await exited;
  clearTimeout(deadline);
  if (late) throw new Error(`${name} did not end within ${LIMIT_MS / 1000} s of SIGTERM`);
  return code;
}

/**
 * Runs `work` with an address that passes everything on to the API. The path of each request goes to `interfere` before it is
 * passed on, which may return a response of its own.
 */
export async function withApiProxy<T>(
  apiUrl: string,
  interfere: (path: string) => Promise<{ status: number; body: unknown } | undefined>,
  work: (url: string) => Promise<T>,
): Promise<T> {
  const pass = async ({ url = '', headers }: IncomingMessage, response: ServerResponse) => {
    const send = (status: number, body: string) =>
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(body);
    const own = await interfere(url);
    if (own) return send(own.status, JSON.stringify(own.body));
    const version = headers['svc-version'];
    const passed = {
      ...{ authorization: headers.authorization ?? '' },
      ...(typeof version === 'string' && { 'svc-version': version }),
    };
    const result = await fetch(`${apiUrl}${url}`, { headers: passed });
    return send(result.status, await result.text());
  };
  const proxy = createServer((request, response) => void pass(request, response));
  try {
    return await work(await listening(proxy));
  } finally {
    proxy.close();
  }
}
