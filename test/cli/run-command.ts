import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { createContext } from '../../packages/cli/src/process-context.js';
import { runProgram } from '../../packages/cli/src/program.js';
import { type MeterlineOptions, type MeterlineRun, runMeterline } from './run-meterline.js';

/**
 * Runs the command line inside this process, which takes a fraction of a process of its own: for tests that are about
 * what a command does, and not about how it starts and ends. What is interrupted or asked back is a process all the same.
 */
export async function runCommand(args: readonly string[], options: MeterlineOptions = {}): Promise<MeterlineRun> {
  const { env, stdin = '', ...processOnly } = options;
  if (typeof stdin === 'object' || Object.keys(processOnly).length > 0) return runMeterline(args, options);
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const output = Promise.all([text(stdout), text(stderr)]);
  const environment = { METERLINE_DATA_DIR: 'none', METERLINE_CONFIG: 'none/config.json', ...env };
  const input = Readable.from([stdin], { objectMode: false });
  const { context, close } = createContext({ stdin: input, stdout, stderr }, environment);
  // The process' own signals are the test run's.
  const interruption = () => new AbortController().signal;
  const code = await runProgram(args, { stdout, stderr }, async () => ({ ...context, interruption }));
  await close();
  stdout.end();
  stderr.end();
  const [out, err] = await output;
  return { code, stdout: out, stderr: err };
}
