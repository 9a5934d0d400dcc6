/** The process around the command line: its arguments, streams and signals. */
import type { CommandContext } from './command.js';
import { overview } from './overview.js';

const { stdout } = process;

// A reader that has seen enough, such as head, closes the pipe; that is no failure.
stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
});

let close = async (): Promise<void> => undefined;

/** Reads the environment, and loads what that takes, for a command that is really called. */
async function openContext(): Promise<CommandContext> {
  const { createContext } = await import('./process-context.js');
  const opened = createContext({ stdin: process.stdin, stdout, stderr: process.stderr });
  close = opened.close;
  return opened.context;
}

const args = process.argv.slice(2);
const text = overview(args, stdout.columns);
if (text !== undefined) {
  stdout.write(text);
} else {
  const { runProgram } = await import('./program.js');
  process.exitCode = await runProgram(args, { stdout, stderr: process.stderr }, openContext);
  await close();
}
