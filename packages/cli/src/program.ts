import { Command, CommanderError } from 'commander';
import type { CommandContext } from './command-context.js';
import { say } from './command-context.js';
import { CommandError, EXIT_CODES, type ExitCode } from './command-error.js';
import { addAuditCommand } from './commands/audit.js';
import { addEmitCommand } from './commands/emit.js';
import { addEraseCommand } from './commands/erase.js';
import { addKeysCommands } from './commands/keys.js';
import { addMigrateCommand } from './commands/migrate.js';
import { addQueueCommands } from './commands/queue.js';
import { addRejectedCommands } from './commands/rejected.js';
import { addReplayCommand } from './commands/replay.js';
import { addRepriceCommand } from './commands/reprice.js';
import { readVersion } from './version.js';

/**
 * Runs the command line.
 * @param args without the interpreter and the script
 * @returns the exit code; expected failures have been told on stderr by then
 * @throws whatever is a defect of the program
 */
export async function runProgram(args: readonly string[], context: CommandContext): Promise<ExitCode> {
  const program = new Command('meterline')
    .description('Billing metrics: schema, API keys, usage events and what their operator needs.')
    .version(readVersion())
    .addHelpText('afterAll', '\nExit codes: 0 done, 1 failed, 2 wrong usage or settings.')
    .configureOutput({
      writeOut: (text) => context.stdout.write(text),
      writeErr: (text) => context.stderr.write(text),
      outputError: (text, write) => write(`meterline: ${text}`),
    })
    .showHelpAfterError('(add --help for more)')
    .exitOverride();
  addMigrateCommand(program, context);
  addKeysCommands(program, context);
  addEmitCommand(program, context);
  addReplayCommand(program, context);
  addRepriceCommand(program, context);
  addRejectedCommands(program, context);
  addQueueCommands(program, context);
  addAuditCommand(program, context);
  addEraseCommand(program, context);

  try {
    await program.parseAsync(args, { from: 'user' });
    return EXIT_CODES.ok;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_CODES.ok : EXIT_CODES.usage;
    if (!(error instanceof CommandError)) throw error;
    say(context, `meterline: ${error.message}`);
    return error.exitCode;
  }
}
