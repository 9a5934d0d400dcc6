import { parseArgs } from 'node:util';
import { UsageError } from './env.js';

export const HELP = `Usage: npm start [-- --no-demo]

Runs Meterline on this machine: ClickHouse, Redis, the ingest and the query service, and a demo that plays traffic.

  --no-demo   start empty: neither history nor live traffic
  --help      show this

  PORT                where the API listens (8080, or any free port if that is taken)
  METERLINE_DATA_DIR  where data and logs are kept (.meterline)
  CLICKHOUSE_URL      use this ClickHouse (with CLICKHOUSE_USER, _PASSWORD, _DATABASE) instead of the embedded one
  REDIS_URL           use this Redis instead of a local one`;

export interface CommandLine {
  readonly demo: boolean;
  readonly help: boolean;
}

/** @throws UsageError */
export function parseCommandLine(args: string[]): CommandLine {
  try {
    const { values } = parseArgs({
      args,
      options: {
        'no-demo': { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    return { demo: !values['no-demo'], help: values.help };
  } catch (cause) {
    throw new UsageError(`${cause instanceof Error ? cause.message : cause} (see npm start -- --help)`, { cause });
  }
}
