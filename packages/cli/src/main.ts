/** Starts the process: connects the command line to its arguments, streams and exit code. */
import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { Writable } from 'node:stream';
import { allowSlowConnections } from '@meterline/service/connecting';
import { useOutboundProxy } from '@meterline/service/outbound-proxy';
import { type CommandStreams, say } from './command.js';
import { EXIT_CODES, systemErrorText } from './failure.js';
import { runProgram } from './program.js';

const { stdin, stderr } = process;
const stdout: CommandStreams['stdout'] = process.stdout instanceof Socket ? process.stdout : fileWriter(1);

// If a reader such as `head` closes stdout early, end without an error. Ignore errors of stderr, so that a long operation continues when no
// process reads its progress.
for (const stream of [stdout, stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (stream === stderr) return;
    if (error.code === 'EPIPE') process.exit();
    say({ stderr }, `meterline: cannot write the output: ${systemErrorText(error) ?? error.message}`);
    process.exit(1);
  });
}

allowSlowConnections();
process.exitCode = await useOutboundProxy(process.env).then(
  () =>
    runProgram(process.argv.slice(2), { stdout, stderr }, async () =>
      (await import('./context.js')).createContext({ stdin, stdout, stderr }),
    ),
  (error: Error) => {
    say({ stderr }, `meterline: ${error.message}`);
    return EXIT_CODES.usage;
  },
);

/** Writes to a file descriptor. If a full disk takes only a part of a write, Node's own stream loses data without an error. */
function fileWriter(descriptor: number): Writable {
  return new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      try {
        for (let at = 0; at < chunk.length; ) at += writeSync(descriptor, chunk, at);
        done();
      } catch (error) {
        done(error as Error);
      }
    },
  });
}
