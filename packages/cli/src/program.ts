/** Runs the command line: registers every command, parses the arguments, and serves shell completion. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import tab from '@bomb.sh/tab/commander';
import { Command, CommanderError } from 'commander';
import { type CommandContext, type CommandStreams, say } from './command.js';
import { CommandError, EXIT_CODES, type ExitCode } from './failure.js';
import { rejectRepeated } from './repeated.js';

type CompleteCommand = (command: Command, context: CommandContext) => void;

const explain = () => import('./commands/user/explain.js');
const access = () => import('./commands/user/access.js');
const prices = () => import('./commands/user/prices.js');
const servers = () => import('./commands/operator/servers.js');

export const COMMAND_GROUPS: Readonly<
  Record<string, Readonly<Record<string, readonly [summary: string, load: () => Promise<CompleteCommand>]>>>
> = {
  'Usage and cost:': {
    metrics: [
      'Show usage and cost as a table, JSON or CSV',
      async () => (await import('./commands/user/metrics.js')).addMetrics,
    ],
    export: [
      'Export a month of usage and cost in the FOCUS format',
      async () => (await import('./commands/user/export.js')).addExport,
    ],
    explain: ['List the events behind an amount', async () => (await explain()).addExplain],
    alerts: ['Manage spend and usage alerts', async () => (await import('./commands/user/alerts.js')).addAlerts],
    accounts: ['List the accounts your API key can access', async () => (await access()).addAccounts],
    'resource-types': ['List the resource types used in a time window', async () => (await explain()).addResourceTypes],
    dimensions: ['List billing dimensions, units and prices', async () => (await prices()).addDimensions],
    estimate: ['Estimate what given usage would cost', async () => (await prices()).addEstimate],
    mcp: [
      'Serve usage and cost to AI assistants (Model Context Protocol)',
      async () => (await import('./commands/user/mcp.js')).addMcp,
    ],
  },
  'Access and shell:': {
    login: ['Save an API key', async () => (await access()).addLogin],
    logout: ['Remove a saved API key', async () => (await access()).addLogout],
    whoami: ['Show which API, key and account are in use', async () => (await access()).addWhoami],
    keys: ['Create, list and revoke API keys', async () => (await import('./commands/user/keys.js')).addKeys],
  },
  'Sending usage events:': {
    emit: [
      'Send events from a JSON Lines file to a collector',
      async () => (await import('./commands/user/emit.js')).addEmit,
    ],
  },
  'Operating Meterline (needs ClickHouse or Redis):': {
    migrate: ['Create or update the ClickHouse schema', async () => (await servers()).addMigrate],
    queue: ['Show the state of the job queue', async () => (await servers()).addQueue],
    top: [
      'Show which accounts send most, are rejected most, or lag',
      async () => (await import('./commands/operator/top.js')).addTop,
    ],
    rejected: [
      'List, fix, replay and discard rejected events',
      async () => (await import('./commands/operator/rejected.js')).addRejected,
    ],
    catalog: [
      'Remove a billing dimension that has no events',
      async () => (await import('./commands/operator/catalog.js')).addCatalog,
    ],
    reprice: [
      "Recalculate an account's costs with another price book",
      async () => (await import('./commands/operator/reprice.js')).addReprice,
    ],
    audit: [
      'Verify rollups against their events, and repair differences',
      async () => (await import('./commands/operator/audit.js')).addAudit,
    ],
    retention: [
      'Close old months and delete their events',
      async () => (await import('./commands/operator/retention.js')).addRetention,
    ],
    erase: ['Erase an account and all its data', async () => (await import('./commands/operator/erase.js')).addErase],
  },
};

const HELP_END = `
Exit codes: 0 success, 1 failure, 2 invalid flags or settings.
Commands that call the API: 3 not allowed, 4 unreachable or unavailable (retry later).`;

/**
 * Runs the command line.
 * @param args the arguments, without the interpreter and the script
 * @param openContext creates the context when a command runs. The program's own --help and --version do not need it.
 * @returns the exit code. The messages of expected errors are already on stderr.
 * @throws any unexpected error, which is a bug
 */
export async function runProgram(
  args: readonly string[],
  streams: CommandStreams,
  openContext: () => Promise<CommandContext>,
): Promise<ExitCode> {
  try {
    const program = createProgram(streams);
    const isCompletion = args[0] === 'complete';
    // Rewrite `help keys create` to `keys create --help`, because commander would show the help of `keys`.
    const line = args[0] === 'help' && args.length > 1 ? [...args.slice(1), '--help'] : args;
    await addCommands(program, isCompletion ? args[2] : line[0], openContext);
    addCompletion(program, isCompletion ? args.at(-1) : undefined);
    // For an unknown command `foo`, drop the other arguments. Otherwise commander would show the program's help for `foo --help`.
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

/** Matches a long value between quotes in a message of commander. Loading `shortened` of the catalog would slow down every start. */
const LONG_VALUE = /(?<= )'([^'\n]{80})[^'\n]+'/gu;

function createProgram({ stdout, stderr }: CommandStreams): Command {
  return new Command('meterline')
    .description('Query usage and cost, manage alerts and API keys, and operate Meterline.')
    .version(readVersion(), '-V, --version', 'Show the version')
    .helpOption('-h, --help', 'Show help')
    .helpCommand('help [command]', 'Show help for a command')
    .addHelpText('afterAll', HELP_END)
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(text),
      outputError: (text, write) => write(`meterline: ${text.replace(LONG_VALUE, "'$1…'")}`),
    })
    .configureHelp({ helpWidth: stdout.columns ?? 100 })
    .showHelpAfterError('(use --help for details)')
    .exitOverride();
}

/**
 * Adds all commands with their names and summaries, which is enough for --help and for suggestions after a typing error. Loads only the
 * module of the named command, because loading modules takes most of the start time.
 */
async function addCommands(program: Command, named: string | undefined, openContext: () => Promise<CommandContext>) {
  for (const [heading, commands] of Object.entries(COMMAND_GROUPS)) {
    program.commandsGroup(heading);
    for (const [name, [summary, load]] of Object.entries(commands)) {
      const command = program.command(name).summary(summary).description(summary);
      if (name !== named) continue;
      (await load())(command, await openContext());
      rejectRepeated(command);
    }
  }
}

function readVersion(): string {
  const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return /"version": "([^"]+)"/.exec(manifest)?.[1] ?? '';
}

const SETUP = `
Setup:
  bash  echo 'source <(meterline completion bash)' >> ~/.bashrc  (with the package bash-completion)
  zsh   echo 'source <(meterline completion zsh)' >> ~/.zshrc    (after compinit)
  fish  meterline completion fish > ~/.config/fish/completions/meterline.fish
Then open a new shell. "meterline" must be on the PATH.`;

/** Adds the `completion` command, and the hidden `complete` command, which shells call. Both only know the commands that were added before. */
function addCompletion(program: Command, typed: string | undefined): void {
  if (typed !== undefined) {
    for (const command of program.commands.flatMap((each) => [each, ...each.commands]))
      describeForShell(command, typed);
  }
  program.commandsGroup('Access and shell:');
  tab(program, { completionCommandName: 'completion' });
  program.commands
    .find((command) => command.name() === 'completion')
    ?.summary('Print a shell completion script')
    .description('Print a script with which a shell completes commands, flags and values. Completion calls no server.')
    .addHelpText('after', SETUP);
}

const FILE = /<(?:file|path)>/;

/** Replaces long descriptions with summaries, which fit on one line. Offers file names for file arguments. */
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
