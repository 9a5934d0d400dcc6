/** The process around the command line: its arguments, streams and signals. */
import { createContext, type OpenedContext } from './command.js';
import { runProgram } from './program.js';

const { stdin, stdout, stderr } = process;

// A reader that has seen enough, such as head, closes the pipe; that is no failure. What is under way does not end because nobody
// reads its progress.
for (const stream of [stdout, stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    if (stream === stdout) process.exit();
  });
}

let opened: OpenedContext | undefined;
process.exitCode = await runProgram(process.argv.slice(2), { stdout, stderr }, () => {
  opened = createContext({ stdin, stdout, stderr });
  return opened.context;
});
await opened?.close();
