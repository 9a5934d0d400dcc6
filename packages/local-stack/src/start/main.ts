/** Runs `npm start`: all of Meterline on one machine, until a signal stops it. */
import { once } from 'node:events';
import { resolve } from 'node:path';
import { EnvError, StartError } from '@meterline/service';
import { MigrationError } from '@meterline/warehouse';
import { LocalStackError } from '../errors.js';
import { DEFAULT_DATA_DIR, HELP, parseCommandLine, readEnv } from './settings.js';
import { LOCAL_HOSTS, type RunningStack, Session, startStack } from './stack.js';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const PARENT_POLL_MS = 500;
/** A second signal within this time comes from the same Ctrl-C, because npm forwards the signal. */
const FORWARDING_MS = 500;
/** Exit code of a shell command that was ended by Ctrl-C. */
const INTERRUPTED = 130;
const EXPECTED_ERRORS = [EnvError, LocalStackError, MigrationError, StartError];

async function run(args: string[], variables: NodeJS.ProcessEnv, say: (line: string) => void): Promise<void> {
  const { help, ...requested } = parseCommandLine(args);
  if (help) return say(HELP);
  const env = readEnv(variables);
  const stop = stopRequest();
  stop.addEventListener('abort', () => say('Stopping. Press Ctrl-C again to stop immediately.'));
  const session = new Session();
  try {
    say('Starting ClickHouse, Redis and the services…');
    const stack = await startStack(session, { ...requested, env, say, stop });
    const dataDir = { name: env.METERLINE_DATA_DIR, path: resolve(env.METERLINE_DATA_DIR) };
    say(summarize(stack, { dataDir, now: new Date() }));
    if (!stop.aborted) await once(stop, 'abort');
  } catch (error) {
    // If the stack is stopped during the start, that is not a failure.
    if (error !== stop.reason) throw error;
  } finally {
    await session.stop();
  }
}

/**
 * Returns a signal that aborts at the first SIGINT, SIGTERM or SIGHUP, or when npm is gone. A second signal exits immediately, and the
 * child processes then end on their own. Each Ctrl-C arrives twice: from the terminal and from npm.
 */
function stopRequest(): AbortSignal {
  const request = new AbortController();
  let requestedAt: number | undefined;
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      requestedAt ??= performance.now();
      if (performance.now() - requestedAt > FORWARDING_MS) process.exit(INTERRUPTED);
      request.abort();
    });
  }
  const parent = process.ppid;
  const isOrphan = () => process.env['npm_lifecycle_event'] === 'start' && process.ppid !== parent;
  setInterval(() => isOrphan() && request.abort(), PARENT_POLL_MS).unref();
  return request.signal;
}

interface SummaryOptions {
  /** `name` is METERLINE_DATA_DIR as set by the user. `path` is the absolute path. */
  readonly dataDir: { readonly name: string; readonly path: string };
  readonly now: Date;
}

/** Returns the text that `npm start` prints when the stack runs. Its commands can be pasted into a shell. */
function summarize({ addresses, metricsUrls }: RunningStack, options: SummaryOptions): string {
  const { apiUrl, collectorUrl, account, adminKey, emitterKey } = addresses;
  const { dataDir, now } = options;
  const day = now.toISOString().slice(0, 10);
  const nextDay = new Date(Date.parse(day) + 24 * 60 * 60 * 1000).toISOString().slice(0, 10);
  const event = {
    eventId: 'my-first-event',
    workspace: 'production',
    resourceType: 'agent',
    resourceName: 'my-agent',
    billingDimension: 'agent_compute_runtime_gbs',
    usage: '12.5',
    timestamp: `${now.toISOString().slice(0, 19)}Z`,
  };
  const query = `startTime=${day}T00:00:00Z&endTime=${nextDay}T00:00:00Z&groupBy=resource_name`;
  return `
Meterline is running.

  Web page   ${apiUrl}/ (sign in with the admin key)
  API        ${apiUrl}
  Collector  ${collectorUrl}
  Account    ${account}
  Admin key  ${adminKey}
  Data, logs ${dataDir.path}
  Webhooks   can also use ${LOCAL_HOSTS}, with or without TLS
  Metrics    ${metricsUrls.join('\n             ')}
${dataDir.name === DEFAULT_DATA_DIR ? '' : forOtherTerminals(dataDir.path)}
Send an event:

  curl -s -H 'Authorization: Bearer ${emitterKey}' -H 'Content-Type: application/json' \\
    '${collectorUrl}/v0/events' \\
    -d '${JSON.stringify(event)}'

Query today's usage and cost of the account:

  curl -s -H 'Authorization: Bearer ${adminKey}' \\
    '${apiUrl}/v0/accounts/${account}/metrics?${query}'

Ctrl-C stops everything; the data stays.
`;
}

function forOtherTerminals(path: string): string {
  return `
To use the meterline command in another terminal, first run:

  export METERLINE_DATA_DIR='${path.replaceAll("'", "'\\''")}'
`;
}

// Ignore output errors, because the reader may exit first (`npm start | head`). Servers and services write to their log files.
for (const output of [process.stdout, process.stderr]) output.on('error', () => undefined);

try {
  await run(process.argv.slice(2), process.env, (line) => console.log(line));
} catch (error) {
  if (!EXPECTED_ERRORS.some((known) => error instanceof known)) throw error;
  const problems = error instanceof EnvError ? error.problems : [error instanceof Error ? error.message : error];
  console.error(`meterline: ${problems.join('; ')}`);
  process.exitCode = 1;
}
