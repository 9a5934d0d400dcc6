import { MigrationError, migrate } from '@meterline/warehouse';
import type { Command } from 'commander';
import { type CommandContext, CommandError, printResult, say } from '../command.js';
import { clickHouseFailure, reachClickHouse } from '../connections/clickhouse.js';
import { type JsonFlag, withClickHouseFlags, withJson } from '../flags.js';
import type { ClickHouseFlags } from '../settings/settings.js';

type MigrateFlags = ClickHouseFlags & JsonFlag;

export function addCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('migrate')
    .description('Creates the database if there is none and runs the migrations that it lacks. Safe to run again.')
    .action((flags: MigrateFlags) => runMigrate(context, flags));
  withJson(withClickHouseFlags(command));
}

async function runMigrate(context: CommandContext, flags: MigrateFlags): Promise<void> {
  const settings = await context.settings.clickhouse(flags);
  const options = await reachClickHouse(settings);
  const { database } = settings;
  try {
    const applied = await migrate(options, (line) => say(context, line));
    const text =
      applied.length === 0
        ? `Database ${database} is up to date.`
        : `Applied to database ${database}:\n${applied.map((name) => `  ${name}`).join('\n')}`;
    printResult(context, flags.json, { database, applied }, text);
  } catch (error) {
    if (error instanceof MigrationError) throw new CommandError(error.message, undefined, { cause: error });
    throw clickHouseFailure(settings, error);
  }
}
