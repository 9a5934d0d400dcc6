/** The process around the command line: its arguments, streams and signals. */
import { EnvError, readTracingSettings, startTracing, type Tracing } from '@meterline/service/tracing';
import type { CommandContext } from './command-context.js';
import { EXIT_CODES, systemErrorCode } from './command-error.js';
import { runProgram } from './program.js';
import { readEnvironment } from './settings/environment.js';
import { findLocalStack } from './settings/local-stack-file.js';
import { Settings } from './settings/settings.js';

const environment = readEnvironment();
const tracing = await openTracing();

const context: CommandContext = {
  tracing,
  settings: new Settings(environment, () => findLocalStack(environment.METERLINE_DATA_DIR, process.cwd())),
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  now: () => new Date(),
  interruption: () => {
    const controller = new AbortController();
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => controller.abort());
    return controller.signal;
  },
};

// A reader that has seen enough, such as head, closes the pipe; that is no failure.
process.stdout.on('error', (error) => {
  if (systemErrorCode(error) !== 'EPIPE') throw error;
  process.exit();
});

process.exitCode = await runProgram(process.argv.slice(2), context);
await tracing.close();

async function openTracing(): Promise<Tracing> {
  const say = (line: string) => process.stderr.write(`meterline: ${line}\n`);
  try {
    const settings = readTracingSettings(process.env, 'meterline-cli');
    return await startTracing(settings, (reason) => say(`spans could not be sent: ${reason}`));
  } catch (error) {
    if (!(error instanceof EnvError)) throw error;
    say(error.message);
    process.exit(EXIT_CODES.usage);
  }
}
