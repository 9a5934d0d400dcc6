/** Every command, in the order of --help. A command's own module is loaded only when it is called or asked for help. */
import type { Command } from 'commander';
import type { CommandContext } from './command.js';

/** Adds a command, with all its flags, to the program. */
type AddCommand = (program: Command, context: CommandContext) => void;

const explain = () => import('./commands/explain.js');
const access = () => import('./commands/access.js');
const prices = () => import('./commands/prices.js');
const servers = () => import('./commands/servers.js');

/** By heading and name. */
export const COMMAND_GROUPS: Readonly<
  Record<string, Readonly<Record<string, readonly [summary: string, load: () => Promise<AddCommand>]>>>
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
  },
  'Your access and your shell:': {
    login: ['keep an API key for later calls', async () => (await access()).addLogin],
    logout: ['forget it', async () => (await access()).addLogout],
    whoami: ['which API and key are in use, and where they come from', async () => (await access()).addWhoami],
  },
  'Sending usage events:': {
    emit: [
      'send events from a JSON Lines file to a collector',
      async () => (await import('./commands/emit.js')).addEmit,
    ],
  },
  'Operating Meterline (needs ClickHouse and Redis):': {
    migrate: ['create or update the schema in ClickHouse', async () => (await servers()).addMigrate],
    keys: ['API keys of the query API: create, list, revoke', async () => (await import('./commands/keys.js')).addKeys],
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
