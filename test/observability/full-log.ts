/** Services whose log is on a disk that takes no more. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { findFreePort } from '@meterline/local-stack';
import { openFull } from '../harness/faults.js';
import type { ServiceEnvironment } from '../harness/services.js';

export interface Started {
  readonly child: ChildProcess;
  readonly url: string;
  /** The exit code, and what it wrote to standard error. */
  readonly ended: Promise<{ code: unknown; stderr: string }>;
}

/** A service as `node services/<name>/dist/main.js > /dev/full` starts it. */
export async function startWithFullLog(name: 'ingest' | 'query', env: ServiceEnvironment): Promise<Started> {
  const main = fileURLToPath(new URL(`../../services/${name}/dist/main.js`, import.meta.url));
  const [apiPort, adminPort] = [await findFreePort(), await findFreePort()];
  const full = openFull();
  const child = spawn(process.execPath, [main], {
    stdio: ['ignore', full, 'pipe', 'ipc'],
    env: {
      ...{ PORT: String(apiPort), ADMIN_PORT: String(adminPort), CURSOR_SECRET: 'x'.repeat(32), LOG_LEVEL: 'debug' },
      ...env,
    },
  });
  closeSync(full);
  const ended = Promise.all([once(child, 'exit'), child.stderr ? text(child.stderr) : '']);
  return {
    child,
    url: `http://127.0.0.1:${name === 'query' ? apiPort : adminPort}`,
    ended: ended.then(([[code], stderr]) => ({ code, stderr })),
  };
}

export async function untilAnswered({ child, url }: Started, path: string): Promise<number> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}`);
    const answer = await fetch(`${url}${path}`, { headers: { connection: 'close' } }).catch(() => undefined);
    if (answer) return answer.status;
    await sleep(20);
  }
}
