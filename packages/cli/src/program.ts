import { readFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import { z } from 'zod';
import { type CommandContext, type CommandStreams, say } from './command.js';
import { COMMAND_GROUPS } from './command-list.js';
import { addCompletion } from './commands/completion.js';
import { CommandError, EXIT_CODES, type ExitCode } from './failure.js';

const HELP_END = `
Exit codes: 0 done, 1 failed, 2 wrong usage or settings.
Of commands that ask the API, also: 3 not allowed, 4 not reachable, or asks to come back later.
Of emit, also: 5 some lines were rejected, the others sent.`;

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
  openContext: () => CommandContext,
): Promise<ExitCode> {
  try {
    const program = createProgram(streams);
    const isCompletion = args[0] === 'complete';
    // commander's own `help keys create` shows the help of `keys`.
    const line = args[0] === 'help' && args.length > 1 ? [...args.slice(1), '--help'] : args;
    const called = isCompletion ? args[2] : line[0];
    await addCommands(program, called, openContext);
    addCompletion(program, isCompletion ? args.at(-1) : undefined);
    // It answers `foo --help` with the help of the program, and not a word about `foo`.
    const isKnown = ['complete', 'help', ...program.commands.map((command) => command.name())].includes(line[0] ?? '');
    const isCommand = line[0] !== undefined && !line[0].startsWith('-');
    await program.parseAsync(isCommand && !isKnown ? line.slice(0, 1) : line, { from: 'user' });
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
    .description('Billing metrics: what accounts used and what it cost, and the tools of those who run Meterline.')
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
async function addCommands(program: Command, called: string | undefined, openContext: () => CommandContext) {
  for (const [heading, commands] of Object.entries(COMMAND_GROUPS)) {
    program.commandsGroup(heading);
    for (const [name, [summary, load]] of Object.entries(commands)) {
      if (name === called) (await load())(program, openContext());
      else program.command(name).description(summary);
    }
  }
}

const manifest = z.object({ version: z.string() });

/** The version of this package, which is in its manifest and nowhere else. */
function readVersion(): string {
  return manifest.parse(JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))).version;
}
