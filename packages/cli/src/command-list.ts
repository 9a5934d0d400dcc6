/** Every command, in the order of --help. A command's own module is loaded only when it is called or asked for help. */
import type { Command } from 'commander';
import type { CommandContext } from './command-context.js';

/** What the module of a command exports. */
export interface CommandModule {
  /** Adds the command, with all its flags, to the program. */
  addCommand(program: Command, context: CommandContext): void;
}

export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  readonly load: () => Promise<CommandModule>;
}

export interface CommandGroup {
  readonly heading: string;
  readonly commands: readonly CommandEntry[];
}

export const COMMAND_GROUPS: readonly CommandGroup[] = [
  {
    heading: 'Usage and cost:',
    commands: [
      {
        name: 'metrics',
        summary: 'what an account used and what it cost: a table, JSON or CSV',
        load: () => import('./commands/metrics.js'),
      },
      {
        name: 'accounts',
        summary: 'the accounts that you may read',
        load: () => import('./commands/accounts.js'),
      },
      {
        name: 'resource-types',
        summary: 'the resource types that an account used in a window',
        load: () => import('./commands/resource-types.js'),
      },
      {
        name: 'dimensions',
        summary: 'what is billed: dimensions, units and prices',
        load: () => import('./commands/dimensions.js'),
      },
      {
        name: 'estimate',
        summary: 'what a list of usage would cost',
        load: () => import('./commands/estimate.js'),
      },
    ],
  },
  {
    heading: 'Your access:',
    commands: [
      {
        name: 'login',
        summary: 'keep an API key for later calls',
        load: () => import('./commands/login.js'),
      },
      {
        name: 'logout',
        summary: 'forget it',
        load: () => import('./commands/logout.js'),
      },
      {
        name: 'whoami',
        summary: 'which API and key are in use, and where they come from',
        load: () => import('./commands/whoami.js'),
      },
    ],
  },
  {
    heading: 'Sending usage events (needs Redis):',
    commands: [
      {
        name: 'emit',
        summary: 'send events from a JSON Lines file through the queue',
        load: () => import('./commands/emit.js'),
      },
      {
        name: 'replay',
        summary: 'play the Azure LLM 2023 trace as usage events',
        load: () => import('./commands/replay.js'),
      },
    ],
  },
  {
    heading: 'Operating Meterline (needs ClickHouse and Redis):',
    commands: [
      {
        name: 'migrate',
        summary: 'create or update the schema in ClickHouse',
        load: () => import('./commands/migrate.js'),
      },
      {
        name: 'keys',
        summary: 'API keys of the query API: create, list, revoke',
        load: () => import('./commands/keys.js'),
      },
      {
        name: 'queue',
        summary: 'the queue between runtimes and the ingest workers',
        load: () => import('./commands/queue.js'),
      },
      {
        name: 'rejected',
        summary: 'events and jobs that could not be accepted: see, fix, send again, discard',
        load: () => import('./commands/rejected.js'),
      },
      {
        name: 'reprice',
        summary: 'give the events of an account the prices of another price book',
        load: () => import('./commands/reprice.js'),
      },
      {
        name: 'audit',
        summary: 'compare the rollups with the events they come from',
        load: () => import('./commands/audit.js'),
      },
      {
        name: 'erase',
        summary: 'erase an account: its events, refused events and API keys',
        load: () => import('./commands/erase.js'),
      },
    ],
  },
];
