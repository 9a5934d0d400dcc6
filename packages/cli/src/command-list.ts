/** Every command, in the order of --help. A command's own module is loaded only when it is called or asked for help. */
import type { Command } from 'commander';
import type { CommandContext } from './command-context.js';

/** Adds the command, with all that it takes, to the program. */
export type AddCommand = (program: Command, context: CommandContext) => void;

export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  readonly load: () => Promise<AddCommand>;
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
        load: async () => (await import('./commands/metrics.js')).addMetricsCommand,
      },
      {
        name: 'accounts',
        summary: 'the accounts that you may read',
        load: async () => (await import('./commands/accounts.js')).addAccountsCommand,
      },
      {
        name: 'resource-types',
        summary: 'the resource types that an account used in a window',
        load: async () => (await import('./commands/resource-types.js')).addResourceTypesCommand,
      },
      {
        name: 'dimensions',
        summary: 'what is billed: dimensions, units and prices',
        load: async () => (await import('./commands/dimensions.js')).addDimensionsCommand,
      },
      {
        name: 'estimate',
        summary: 'what a list of usage would cost',
        load: async () => (await import('./commands/estimate.js')).addEstimateCommand,
      },
    ],
  },
  {
    heading: 'Your access:',
    commands: [
      {
        name: 'login',
        summary: 'keep an API key for later calls',
        load: async () => (await import('./commands/login.js')).addLoginCommand,
      },
      {
        name: 'logout',
        summary: 'forget it',
        load: async () => (await import('./commands/logout.js')).addLogoutCommand,
      },
      {
        name: 'whoami',
        summary: 'which API and key are in use, and where they come from',
        load: async () => (await import('./commands/whoami.js')).addWhoamiCommand,
      },
    ],
  },
  {
    heading: 'Sending usage events (needs Redis):',
    commands: [
      {
        name: 'emit',
        summary: 'send events from a JSON Lines file through the queue',
        load: async () => (await import('./commands/emit.js')).addEmitCommand,
      },
      {
        name: 'replay',
        summary: 'play the Azure LLM 2023 trace as usage events',
        load: async () => (await import('./commands/replay.js')).addReplayCommand,
      },
    ],
  },
  {
    heading: 'Operating Meterline (needs ClickHouse and Redis):',
    commands: [
      {
        name: 'migrate',
        summary: 'create or update the schema in ClickHouse',
        load: async () => (await import('./commands/migrate.js')).addMigrateCommand,
      },
      {
        name: 'keys',
        summary: 'API keys of the query API: create, list, revoke',
        load: async () => (await import('./commands/keys.js')).addKeysCommands,
      },
      {
        name: 'queue',
        summary: 'the queue between runtimes and the ingest workers',
        load: async () => (await import('./commands/queue.js')).addQueueCommands,
      },
      {
        name: 'rejected',
        summary: 'events and jobs that could not be accepted: see, mend, send again, discard',
        load: async () => (await import('./commands/rejected.js')).addRejectedCommands,
      },
      {
        name: 'reprice',
        summary: 'give the events of an account the prices of another price book',
        load: async () => (await import('./commands/reprice.js')).addRepriceCommand,
      },
      {
        name: 'audit',
        summary: 'compare the rollups with the events they come from',
        load: async () => (await import('./commands/audit.js')).addAuditCommand,
      },
      {
        name: 'erase',
        summary: 'erase an account: its events, refused events and API keys',
        load: async () => (await import('./commands/erase.js')).addEraseCommand,
      },
    ],
  },
];
