/** The flags that several commands share. */
import { isName, MAX_EVENTS_PER_JOB } from '@meterline/catalog/plain';
import { type Command, InvalidArgumentError } from 'commander';

const DEFAULT_BATCH = 500;

export interface JsonFlag {
  readonly json?: boolean;
}

export function withJson(command: Command): Command {
  return command.option('--json', 'print the result as one JSON document');
}

/** For commands that ask the API about an account. */
export function withApiFlags(command: Command): Command {
  return withApiUrl(
    command.option('--account <account>', 'the account; may be left out if the key has only one', nameOf),
  );
}

export function withApiUrl(command: Command): Command {
  return command
    .option('--api-url <url>', 'the address of the API')
    .option('--debug', 'say on standard error what is asked: each request, its time and its id, for support');
}

export function withRedisUrl(command: Command): Command {
  return command.option('--redis-url <url>', 'Redis (else REDIS_URL, a running local stack, redis://127.0.0.1:6379)');
}

/** For commands that use the queue; the others need only the address. */
export function withRedisFlags(command: Command): Command {
  return withRedisUrl(command).option('--queue-prefix <prefix>', 'prefix of the queue (else QUEUE_PREFIX, bull)');
}

export function withClickHouseFlags(command: Command): Command {
  return command
    .option('--clickhouse-url <url>', 'ClickHouse (else CLICKHOUSE_URL, a running local stack, http://127.0.0.1:8123)')
    .option('--clickhouse-user <name>', 'user (else CLICKHOUSE_USER, default)')
    .option(
      '--clickhouse-password <text>',
      'password (else CLICKHOUSE_PASSWORD, none); better given in the environment',
    )
    .option('--clickhouse-database <name>', 'database (else CLICKHOUSE_DATABASE, a running local stack, meterline)');
}

export function withBatch(command: Command): Command {
  const parse = (text: string) => wholeNumber(text, 1, MAX_EVENTS_PER_JOB);
  return command.option('--batch <n>', `events per job, at most ${MAX_EVENTS_PER_JOB}`, parse, DEFAULT_BATCH);
}

/** @throws InvalidArgumentError, which commander turns into a usage error that names the flag */
export function wholeNumber(text: string, min: number, max: number): number {
  const value = Number(text);
  if (!/^-?\d+$/.test(text) || value < min || value > max) {
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
  }
  return value;
}

/** An account's or client's name. @throws InvalidArgumentError */
export function nameOf(text: string): string {
  if (!isName(text)) throw new InvalidArgumentError('It must be 1 to 256 characters without control characters.');
  return text;
}
