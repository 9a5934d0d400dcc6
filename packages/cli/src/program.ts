import { type CommandContext, CommandError, type CommandStreams, EXIT_CODES, type ExitCode, say } from './command.js';
import { COMMAND_GROUPS } from './command-list.js';
import { Command, CommanderError } from './commander.js';
import { DESCRIPTION, HELP_END, readVersion } from './overview.js';

/**
 * Runs the command line.
 * @param args without the interpreter and the script
 * @param openContext called when a command is, so that --help and --version read nothing
 * @returns the exit code; expected failures are on stderr by then
 * @throws any other error: a defect of the program
 */
export async function runProgram(
  args: readonly string[],
  streams: CommandStreams,
  openContext: () => Promise<CommandContext>,
): Promise<ExitCode> {
  try {
    const program = createProgram(streams);
    await addCommands(program, calledCommand(args), openContext);
    await program.parseAsync(args, { from: 'user' });
    return EXIT_CODES.ok;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_CODES.ok : EXIT_CODES.usage;
    if (!(error instanceof CommandError)) throw error;
    say(streams, `meterline: ${error.message}`);
    return error.exitCode;
  }
}

function createProgram({ stdout, stderr }: CommandStreams): Command {
  return new Command('meterline')
    .description(DESCRIPTION)
    .version(readVersion())
    .addHelpText('afterAll', HELP_END)
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(text),
      outputError: (text, write) => write(`meterline: ${text}`),
    })
    .configureHelp({ helpWidth: stdout.columns ?? 100 })
    .showHelpAfterError('(add --help for more)')
    .exitOverride();
}

/** The one that is called in full; of the others, what --help and the suggestion for a mistyped name need. */
async function addCommands(program: Command, called: string | undefined, openContext: () => Promise<CommandContext>) {
  for (const { heading, commands } of COMMAND_GROUPS) {
    program.commandsGroup(heading);
    for (const { name, summary, load } of commands) {
      if (name === called) (await load()).addCommand(program, await openContext());
      else program.command(name).description(summary);
    }
  }
}

/** `meterline metrics …`, `meterline help metrics`. */
function calledCommand([first, second]: readonly string[]): string | undefined {
  return first === 'help' ? second : first;
}
