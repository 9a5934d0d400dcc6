/** The command line: every command, how it is run, and how a shell completes it. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import tab from '@bomb.sh/tab/commander';
import { Command, CommanderError } from 'commander';
import { type CommandContext, type CommandStreams, say } from './command.js';
import { CommandError, EXIT_CODES, type ExitCode } from './failure.js';
import { rejectRepeated } from './repeated.js';

/** Gives a command its flags, its help and its action, or the commands below it. */
type CompleteCommand = (command: Command, context: CommandContext) => void;

const explain = () => import('./commands/explain.js');
const access = () => import('./commands/access.js');
const prices = () => import('./commands/prices.js');
const servers = () => import('./commands/servers.js');

/** By heading and name. */
export const COMMAND_GROUPS: Readonly<
  Record<string, Readonly<Record<string, readonly [summary: string, load: () => Promise<CompleteCommand>]>>>
> = {
  'Usage and cost:': {
    metrics: [
      'what an account used and what it cost: a table, JSON or CSV',
      async () => (await import('./commands/metrics.js')).addMetrics,
    ],
    export: [
      'a month of an account in a format of other tools: FOCUS',
      async () => (await import('./commands/export.js')).addExport,
    ],
    explain: ['the events behind a figure: usage, price and history', async () => (await explain()).addExplain],
    alerts: [
      'webhooks when a day or a month has cost so much: make, change, test',
      async () => (await import('./commands/alerts.js')).addAlerts,
    ],
    accounts: ['the accounts that you may read', async () => (await access()).addAccounts],
    'resource-types': [
      'the resource types that an account used in a window',
      async () => (await explain()).addResourceTypes,
    ],
    dimensions: ['what is billed: dimensions, units and prices', async () => (await prices()).addDimensions],
    estimate: ['what a list of usage would cost', async () => (await prices()).addEstimate],
    mcp: [
      'usage and cost for AI assistants (Model Context Protocol)',
      async () => (await import('./commands/mcp.js')).addMcp,
    ],
  },
  'Your access and your shell:': {
    login: ['keep an API key for later calls', async () => (await access()).addLogin],
    logout: ['forget it', async () => (await access()).addLogout],
    whoami: ['which API and key are in use, and where they come from', async () => (await access()).addWhoami],
    keys: ['API keys: create, list, revoke', async () => (await import('./commands/keys.js')).addKeys],
  },
  'Sending usage events:': {
    emit: [
      'send events from a JSON Lines file to a collector',
      async () => (await import('./commands/emit.js')).addEmit,
    ],
  },
  'Operating Meterline (needs ClickHouse and Redis):': {
    migrate: ['create or update the schema in ClickHouse', async () => (await servers()).addMigrate],
    queue: ['the queue between runtimes and the ingest workers', async () => (await servers()).addQueue],
    rejected: [
      'events and jobs that could not be accepted: see, fix, send again, discard',
      async () => (await import('./commands/rejected.js')).addRejected,
    ],
    reprice: [
      'give the events of an account the prices of another price book',
      async () => (await import('./commands/reprice.js')).addReprice,
    ],
    audit: [
      'compare the rollups with the events they come from',
      async () => (await import('./commands/audit.js')).addAudit,
    ],
    retention: [
      'how long single events are kept: close old months, and drop their events',
      async () => (await import('./commands/retention.js')).addRetention,
    ],
    erase: [
      'erase an account: its events, rejected events and API keys',
      async () => (await import('./commands/erase.js')).addErase,
    ],
  },
};

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
  openContext: () => Promise<CommandContext>,
): Promise<ExitCode> {
  try {
    const program = createProgram(streams);
    const isCompletion = args[0] === 'complete';
    // commander's own `help keys create` shows the help of `keys`.
    const line = args[0] === 'help' && args.length > 1 ? [...args.slice(1), '--help'] : args;
    const called = isCompletion ? args[2] : line[0];
    await addCommands(program, called, openContext);
    addCompletion(program, isCompletion ? args.at(-1) : undefined);
    // commander answers `foo --help` with the help of the program, and not a word about `foo`.
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

/** The one that is called is complete; the others have what --help and the suggestion for a mistyped name need. */
async function addCommands(program: Command, called: string | undefined, openContext: () => Promise<CommandContext>) {
  for (const [heading, commands] of Object.entries(COMMAND_GROUPS)) {
    program.commandsGroup(heading);
    for (const [name, [summary, load]] of Object.entries(commands)) {
      const command = program.command(name).summary(summary).description(summary);
      if (name !== called) continue;
      (await load())(command, await openContext());
      rejectRepeated(command);
    }
  }
}

/** The version of this package, which is in its manifest and nowhere else. */
function readVersion(): string {
  const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return /"version": "([^"]+)"/.exec(manifest)?.[1] ?? '';
}

const SETUP = `
To complete commands, flags and their values with the Tab key:
  bash  echo 'source <(meterline completion bash)' >> ~/.bashrc  (with the package bash-completion)
  zsh   echo 'source <(meterline completion zsh)' >> ~/.zshrc    (after compinit)
  fish  meterline completion fish > ~/.config/fish/completions/meterline.fish
Then open a new shell. "meterline" must be on the PATH.`;

/**
 * Adds the command that completes all that the program has by now, and the hidden one that a shell calls.
 * @param typed what stands where a shell asks what could stand; undefined: none does
 */
function addCompletion(program: Command, typed: string | undefined): void {
  if (typed !== undefined) {
    for (const command of program.commands.flatMap((each) => [each, ...each.commands]))
      describeForShell(command, typed);
  }
  program.commandsGroup('Your access and your shell:');
  tab(program, { completionCommandName: 'completion' });
  program.commands
    .find((command) => command.name() === 'completion')
    ?.summary('a script that lets a shell complete this command line')
    .description('Prints a script that lets a shell complete this command line. It asks no server.')
    .addHelpText('after', SETUP);
}

const FILE = /<(?:file|path)>/;

/** A shell has one line for a command, and the files of a folder as choices. */
function describeForShell(command: Command, typed: string): void {
  command.description(command.summary());
  for (const option of command.options) if (FILE.test(option.flags)) option.choices(filesFor(typed));
  for (const argument of command.registeredArguments) {
    if (FILE.test(`<${argument.name()}>`)) argument.choices(filesFor(typed));
  }
}

function filesFor(typed: string): string[] {
  const folder = typed.slice(0, typed.lastIndexOf('/') + 1);
  if (!existsSync(folder || '.')) return [];
  const found = readdirSync(folder || '.', { withFileTypes: true });
  return found.map((each) => `${folder}${each.name}${each.isDirectory() ? '/' : ''}`);
}
