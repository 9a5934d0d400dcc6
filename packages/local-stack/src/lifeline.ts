/**
 * Ties the life of a command to the process that started this one.
 *
 * Usage: `node lifeline.js COMMAND [ARGUMENT]...`
 *
 * Prints the command's pid on standard output, one line, and sends all of the command's output to standard error. The command inherits
 * the fourth open file, if there is one. When standard input ends (the parent closed it, exited, or was killed) the command gets SIGTERM
 * and, should it not heed that, SIGKILL. When the command ends, this process ends with its exit code.
 */
import { spawn } from 'node:child_process';
import { fstatSync } from 'node:fs';
import { constants } from 'node:os';

const TERMINATION_TIMEOUT_MS = 10_000;
const INHERITED = 3;

const [command = '', ...args] = process.argv.slice(2);
const child = spawn(command, args, {
  stdio: ['ignore', process.stderr.fd, process.stderr.fd, ...(isRegularFile(INHERITED) ? [INHERITED] : [])],
});

function isRegularFile(descriptor: number): boolean {
  try {
    return fstatSync(descriptor).isFile();
  } catch {
    return false;
  }
}

function terminate(): void {
  child.kill('SIGTERM');
  setTimeout(() => child.kill('SIGKILL'), TERMINATION_TIMEOUT_MS).unref();
}

child.once('spawn', () => process.stdout.write(`${child.pid}\n`));
child.once('error', (error) => {
  console.error(error.message);
  process.exit(127);
});
child.once('exit', (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : (code ?? 1)));

// A parent that died before it read the pid must not take this process down before it has ended the command.
process.stdout.once('error', terminate);
process.stdin.once('end', terminate).once('error', terminate).resume();
process.once('SIGTERM', terminate).once('SIGINT', terminate).once('SIGHUP', terminate);
