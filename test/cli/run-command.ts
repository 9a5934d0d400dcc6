import { PassThrough } from 'node:stream';
import { createContext } from '../../packages/cli/src/process-context.js';
import { runProgram } from '../../packages/cli/src/program.js';
import { asRedisUser } from '../harness/redis-users.js';
import { holds, type MeterlineOptions, type MeterlineRun, runMeterline } from './run-meterline.js';

/**
 * Runs the command line inside this process, which takes a fraction of a process of its own: for tests that are about
 * what a command does, and not about how it starts and ends. Ctrl-C is the abort of its signal; only a command that is
 * killed, or runs in another directory, is a process of its own.
 */
export async function runCommand(args: readonly string[], options: MeterlineOptions = {}): Promise<MeterlineRun> {
  const { env = {}, stdin = '', interruptAt, interruptOn, interruptWith = 'SIGINT', cwd } = options;
  if (interruptWith === 'SIGKILL' || cwd !== undefined) return runMeterline(args, options);
  const environment = {
    METERLINE_DATA_DIR: 'none',
    XDG_CONFIG_HOME: 'none',
    ...asRedisUser(env, 'operator'),
  };
  const [input, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const interruption = new AbortController();
  void interruptOn?.then(() => interruption.abort());
  const printed = { stdout: '', stderr: '' };
  stdout.setEncoding('utf8').on('data', (chunk: string) => {
    printed.stdout += chunk;
  });
  stderr.setEncoding('utf8').on('data', (chunk: string) => {
    const before = printed.stderr;
    printed.stderr += chunk;
    const appears = (text: string | RegExp) => holds(printed.stderr, text) && !holds(before, text);
    if (interruptAt !== undefined && appears(interruptAt)) interruption.abort();
    if (typeof stdin === 'object' && appears(stdin.at)) {
      stdin.answer().then(
        (text) => input.end(text),
        (error: Error) => input.destroy(error),
      );
    }
  });
  if (typeof stdin === 'string') input.end(stdin);
  const { context, close } = createContext({ stdin: input, stdout, stderr }, environment);
  // The process' own signals are the test run's.
  const own = { ...context, interruption: () => interruption.signal };
  const code = await runProgram(args, { stdout, stderr }, () => own);
  await close();
  await Promise.all([stdout, stderr].map((stream) => new Promise<void>((resolve) => stream.end(resolve))));
  return { code, ...printed };
}
