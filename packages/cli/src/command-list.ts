/** Every command, in the order of --help. A command's own module is loaded only when it is called or asked for help. */
import type { Command } from 'commander';
import type { CommandContext, CommandModule } from './command.js';

export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  readonly load: () => Promise<CommandModule>;
}

export interface CommandGroup {
  readonly heading: string;
  readonly commands: readonly CommandEntry[];
}

const entry = (name: string, summary: string, load: CommandEntry['load']): CommandEntry => ({ name, summary, load });

export const COMMAND_GROUPS: readonly CommandGroup[] = [
  {
    heading: 'Usage and cost:',
    commands: [
      entry(
        'metrics',
        'what an account used and what it cost: a table, JSON or CSV',
        () => import('./commands/metrics.js'),
      ),
      entry('export', 'a month of an account in a format of other tools: FOCUS', () => import('./commands/export.js')),
      entry('explain', 'the events behind a figure: usage, price and history', () => import('./commands/explain.js')),
      entry('accounts', 'the accounts that you may read', () => import('./commands/accounts.js')),
      entry(
        'resource-types',
        'the resource types that an account used in a window',
        () => import('./commands/resource-types.js'),
      ),
      entry('dimensions', 'what is billed: dimensions, units and prices', () => import('./commands/dimensions.js')),
      entry('estimate', 'what a list of usage would cost', () => import('./commands/estimate.js')),
    ],
  },
  {
    heading: 'Your access and your shell:',
    commands: [
      entry('login', 'keep an API key for later calls', () => import('./commands/login.js')),
      entry('logout', 'forget it', () => import('./commands/logout.js')),
      entry('whoami', 'which API and key are in use, and where they come from', () => import('./commands/whoami.js')),
      entry('completion', 'a script that lets a shell complete this command line', async () =>
        (await import('./commands/completion.js')).completionOf(addEveryCommand),
      ),
    ],
  },
  {
    heading: 'Sending usage events (needs Redis):',
    commands: [
      entry('emit', 'send events from a JSON Lines file through the queue', () => import('./commands/emit.js')),
      entry('replay', 'play the Azure LLM 2023 trace as usage events', () => import('./commands/replay.js')),
    ],
  },
  {
    heading: 'Operating Meterline (needs ClickHouse and Redis):',
    commands: [
      entry('migrate', 'create or update the schema in ClickHouse', () => import('./commands/migrate.js')),
      entry('keys', 'API keys of the query API: create, list, revoke', () => import('./commands/keys.js')),
      entry('queue', 'the queue between runtimes and the ingest workers', () => import('./commands/queue.js')),
      entry(
        'rejected',
        'events and jobs that could not be accepted: see, fix, send again, discard',
        () => import('./commands/rejected.js'),
      ),
      entry(
        'reprice',
        'give the events of an account the prices of another price book',
        () => import('./commands/reprice.js'),
      ),
      entry('audit', 'compare the rollups with the events they come from', () => import('./commands/audit.js')),
      entry(
        'retention',
        'how long single events are kept: close old months, and drop their events',
        () => import('./commands/retention.js'),
      ),
      entry('erase', 'erase an account: its events, refused events and API keys', () => import('./commands/erase.js')),
    ],
  },
];

/** Loads all of them. */
async function addEveryCommand(program: Command, context: CommandContext): Promise<void> {
  for (const { name, summary, load } of COMMAND_GROUPS.flatMap(({ commands }) => commands)) {
    (await load()).addCommand(program, context);
    program.commands.find((command) => command.name() === name)?.summary(summary);
  }
}
