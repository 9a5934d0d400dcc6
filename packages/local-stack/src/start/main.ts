/** `npm start`: the whole of Meterline on one machine, until a signal asks it to stop. */
import { once } from 'node:events';
import { resolve } from 'node:path';
import { MigrationError } from '@meterline/warehouse';
import { LocalStackError } from '../errors.js';
import { HELP, parseCommandLine, readEnv, UsageError } from './settings.js';
import { Session, startStack } from './stack.js';
import { summarize } from './summary.js';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const PARENT_POLL_MS = 500;
/** As a shell reports a command that Ctrl-C ended. */
const INTERRUPTED = 130;
/** Errors that are printed as their message alone, without a stack trace. */
const EXPECTED_ERRORS = [UsageError, LocalStackError, MigrationError];

async function run(args: string[], variables: NodeJS.ProcessEnv, say: (line: string) => void): Promise<void> {
  const { help, ...asked } = parseCommandLine(args);
  if (help) return say(HELP);
  const env = readEnv(variables);
  const stop = stopRequest();
  const session = new Session();
  try {
    say('Starting ClickHouse, Redis and the services…');
    const stack = await startStack(session, { ...asked, env, say, stop });
    const dataDir = { name: env.METERLINE_DATA_DIR, path: resolve(env.METERLINE_DATA_DIR) };
    say(summarize(stack, { dataDir, demo: asked.demo, now: new Date() }));
    if (!stop.aborted) await once(stop, 'abort');
  } catch (error) {
    // A request to stop while still starting is not a failure.
    if (error !== stop.reason) throw error;
  } finally {
    if (stop.aborted) say('Stopping; once more ends everything at once.');
    await session.stop();
  }
}

/**
 * Aborted by the first signal that asks this process to end. A second one ends it at once: every child ends by itself
 * when this process is gone. A signal for npm ends the shell between npm and this process, and does not come here.
 */
function stopRequest(): AbortSignal {
  const request = new AbortController();
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      if (request.signal.aborted) process.exit(INTERRUPTED);
      request.abort();
    });
  }
  const parent = process.ppid;
  const isOrphan = () => process.env['npm_lifecycle_event'] === 'start' && process.ppid !== parent;
  setInterval(() => isOrphan() && request.abort(), PARENT_POLL_MS).unref();
  return request.signal;
}

// Its reader may go before the stack does: `npm start | head`. Its own log files have what the parts say.
for (const output of [process.stdout, process.stderr]) output.on('error', () => undefined);

try {
  await run(process.argv.slice(2), process.env, (line) => console.log(line));
} catch (error) {
  if (!EXPECTED_ERRORS.some((known) => error instanceof known)) throw error;
  console.error(`meterline: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
}
