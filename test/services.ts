/** The services as the processes that they are in production: started from their build, stopped with SIGTERM. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const READY_DEADLINE_MS = 30_000;
const STOP_DEADLINE_MS = 15_000;

export type ServiceEnvironment = Readonly<Record<string, string>>;

export interface ServiceProcess {
  readonly pid: number;
  /** Everything that it has written so far. */
  log(): string;
  /** SIGTERM, and waits for the end. @returns the exit code; rejects when the process does not end in time */
  stop(): Promise<number | null>;
  /** SIGKILL, and waits for the end. */
  kill(): Promise<void>;
}

export interface QueryProcess extends ServiceProcess {
  readonly url: string;
}

const ingestStarted = z.looseObject({ event: z.literal('started') });
const queryListening = z.looseObject({ msg: z.literal('listening'), port: z.number() });

/** @param env on top of PATH, HOME and TZ only, so that a developer's own variables change nothing */
export async function startIngest(env: ServiceEnvironment): Promise<ServiceProcess> {
  return (await startService('ingest', env, ingestStarted)).service;
}

/** On any free port. */
export async function startQuery(env: ServiceEnvironment): Promise<QueryProcess> {
  const { service, ready } = await startService('query', { PORT: '0', ...env }, queryListening);
  return { ...service, url: `http://127.0.0.1:${ready.port}` };
}

/** Starts `services/<name>` and waits for the log line that fits the schema. */
async function startService<Ready extends z.ZodType>(name: string, env: ServiceEnvironment, readyLine: Ready) {
  const child = spawn(process.execPath, [`services/${name}/dist/main.js`], {
    cwd: ROOT,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, TZ: process.env.TZ, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(child, 'exit');
  let log = '';
  const ready = await new Promise<z.output<Ready>>((resolve, reject) => {
    const fail = (why: string) => reject(new Error(`${name} ${why}:\n${log}`));
    const deadline = setTimeout(() => fail('was not ready in time'), READY_DEADLINE_MS);
    let isReady = false;
    const listen = (chunk: string) => {
      log += chunk;
      if (isReady) return;
      const lines = log.split('\n').map((line) => readyLine.safeParse(parseLine(line)));
      const announced = lines.find(({ success }) => success)?.data;
      if (announced === undefined) return;
      isReady = true;
      clearTimeout(deadline);
      resolve(announced);
    };
    child.stdout.setEncoding('utf8').on('data', listen);
    child.stderr.setEncoding('utf8').on('data', listen);
    child.once('error', (error) => fail(`could not be started (${error.message})`));
    child.once('exit', (code, signal) => fail(`ended with ${code ?? signal} before it was ready`));
    void exited.finally(() => clearTimeout(deadline));
  }).catch((error: unknown) => {
    child.kill('SIGKILL');
    throw error;
  });
  const service: ServiceProcess = {
    pid: child.pid ?? 0,
    log: () => log,
    stop: () => stop(name, child, exited),
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
  return { service, ready };
}

async function stop(name: string, child: ChildProcess, exited: Promise<unknown>): Promise<number | null> {
  let late = false;
  const deadline = setTimeout(() => {
    late = true;
    child.kill('SIGKILL');
  }, STOP_DEADLINE_MS);
  child.kill('SIGTERM');
  await exited;
  clearTimeout(deadline);
  if (late) throw new Error(`${name} did not end within ${STOP_DEADLINE_MS / 1000} s of SIGTERM`);
  return child.exitCode;
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
