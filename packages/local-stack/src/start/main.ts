/** `npm start`: the whole of Meterline on one machine, until it is told to stop. */
import { once } from 'node:events';
import { resolve } from 'node:path';
import { RedisUnavailableError } from '../../hosts/redis-binary.js';
import { LocalStackError } from '../errors.js';
import { HELP, parseCommandLine } from './command-line.js';
import { readEnv, UsageError } from './env.js';
import { Session } from './session.js';
import { startStack } from './stack.js';
import { stopRequest } from './stop-request.js';
import { summarize } from './summary.js';

const EXPLAINED = [UsageError, LocalStackError, RedisUnavailableError];

async function run(args: string[], variables: NodeJS.ProcessEnv, say: (line: string) => void): Promise<void> {
  const { help, demo } = parseCommandLine(args);
  if (help) return say(HELP);
  const env = readEnv(variables);
  const stop = stopRequest(process);
  const session = new Session();
  try {
    say('Starting ClickHouse, Redis and the services…');
    const stack = await startStack(session, { env, demo, say, stop });
    const dataDir = { name: env.METERLINE_DATA_DIR, path: resolve(env.METERLINE_DATA_DIR) };
    say(summarize(stack, { dataDir, demo, now: new Date() }));
    if (!stop.aborted) await once(stop, 'abort');
  } catch (error) {
    // Told to stop while still starting: not a failure.
    if (error !== stop.reason) throw error;
  } finally {
    if (stop.aborted) say('Stopping; once more ends everything at once.');
    await session.stop();
  }
}

try {
  await run(process.argv.slice(2), process.env, (line) => console.log(line));
} catch (error) {
  if (!EXPLAINED.some((known) => error instanceof known)) throw error;
  console.error(`meterline: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
}
