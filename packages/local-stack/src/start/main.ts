/** `npm start`: the whole of Meterline on one machine, until a signal asks it to stop. */
import { once } from 'node:events';
import { resolve } from 'node:path';
import { EnvError, StartError } from '@meterline/service';
import { MigrationError } from '@meterline/warehouse';
import { LocalStackError } from '../errors.js';
import { DEFAULT_DATA_DIR, HELP, parseCommandLine, readEnv } from './settings.js';
import { LOCAL_HOSTS, type RunningStack, Session, startStack } from './stack.js';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const PARENT_POLL_MS = 500;
const PASSED_ON_WITHIN_MS = 500;
/** As a shell reports a command that Ctrl-C ended. */
const INTERRUPTED = 130;
/** Errors that are printed as their message alone, without a stack trace. */
const EXPECTED_ERRORS = [EnvError, LocalStackError, MigrationError, StartError];

async function run(args: string[], variables: NodeJS.ProcessEnv, say: (line: string) => void): Promise<void> {
  const { help, ...requested } = parseCommandLine(args);
  if (help) return say(HELP);
  const env = readEnv(variables);
  const stop = stopRequest();
  stop.addEventListener('abort', () => say('Stopping; once more ends everything at once.'));
  const session = new Session();
  try {
    say('Starting ClickHouse, Redis and the services…');
    const stack = await startStack(session, { ...requested, env, say, stop });
    const dataDir = { name: env.METERLINE_DATA_DIR, path: resolve(env.METERLINE_DATA_DIR) };
    say(summarize(stack, { dataDir, now: new Date() }));
    if (!stop.aborted) await once(stop, 'abort');
  } catch (error) {
    // A request to stop while still starting is not a failure.
    if (error !== stop.reason) throw error;
  } finally {
    await session.stop();
  }
}

/**
 * Aborted by the first signal that asks this process to end. A second one ends it at once: every child ends by itself
 * when this process is gone. npm, which the script runs without a shell between, passes on what Ctrl-C has sent here already.
 */
function stopRequest(): AbortSignal {
  const request = new AbortController();
  let requestedAt: number | undefined;
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      requestedAt ??= performance.now();
      if (performance.now() - requestedAt > PASSED_ON_WITHIN_MS) process.exit(INTERRUPTED);
      request.abort();
    });
  }
  const parent = process.ppid;
  const isOrphan = () => process.env['npm_lifecycle_event'] === 'start' && process.ppid !== parent;
  setInterval(() => isOrphan() && request.abort(), PARENT_POLL_MS).unref();
  return request.signal;
}

interface SummaryOptions {
  /** METERLINE_DATA_DIR as it is set, and as an absolute path. */
  readonly dataDir: { readonly name: string; readonly path: string };
  readonly now: Date;
}

/** What `npm start` prints when the stack runs. The commands can be pasted as they are. */
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
  Webhooks   may go to ${LOCAL_HOSTS} too, also without TLS
  Metrics    ${metricsUrls.join('\n             ')}
${dataDir.name === DEFAULT_DATA_DIR ? '' : forOtherTerminals(dataDir.path)}
Send an event:

  curl -s -H 'Authorization: Bearer ${emitterKey}' -H 'Content-Type: application/json' \\
    '${collectorUrl}/v0/events' \\
    -d '${JSON.stringify(event)}'

What did the account use today, and what did it cost?

  curl -s -H 'Authorization: Bearer ${adminKey}' \\
    '${apiUrl}/v0/accounts/${account}/metrics?${query}'

Ctrl-C stops everything; the data stays.
`;
}

function forOtherTerminals(path: string): string {
  return `
In another terminal the meterline command finds it after

  export METERLINE_DATA_DIR='${path.replaceAll("'", "'\\''")}'
`;
}

// Its reader may go before the stack does: `npm start | head`. Its own log files have what the parts say.
for (const output of [process.stdout, process.stderr]) output.on('error', () => undefined);

try {
  await run(process.argv.slice(2), process.env, (line) => console.log(line));
} catch (error) {
  if (!EXPECTED_ERRORS.some((known) => error instanceof known)) throw error;
  const problems = error instanceof EnvError ? error.problems : [error instanceof Error ? error.message : error];
  console.error(`meterline: ${problems.join('; ')}`);
  process.exitCode = 1;
}
