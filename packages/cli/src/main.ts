/** The process around the command line: its arguments, streams and signals. */
import { type CommandContext, systemErrorCode } from './command.js';
import { runProgram } from './program.js';

const { stdout, stderr } = process;

// A reader that has seen enough, such as head, closes the pipe; that is no failure.
stdout.on('error', (error) => {
  if (systemErrorCode(error) !== 'EPIPE') throw error;
  process.exit();
});

let close = async (): Promise<void> => undefined;

/** Reads the environment, and loads what that takes, for a command that is really called. */
async function openContext(): Promise<CommandContext> {
  const { createContext } = await import('./process-context.js');
  const opened = createContext({ stdin: process.stdin, stdout, stderr });
  close = opened.close;
  return opened.context;
}

process.exitCode = await runProgram(process.argv.slice(2), { stdout, stderr }, openContext);
await close();
