/** Reads the command line and the environment of `npm start`. */
import { parseArgs } from 'node:util';
import {
  clickHouseUrlVariable,
  EnvError,
  queueVariables,
  readEnvironment,
  redisUrlVariable,
  wholeNumberVariable,
} from '@meterline/service/environment';
import { z } from 'zod';

/** Default data directory. The meterline command uses the same default. */
export const DEFAULT_DATA_DIR = '.meterline';

export const HELP = `Usage: npm start [-- [--no-demo] [--shards N] [--collector-port N]]

Runs Meterline on this machine: ClickHouse, Redis, the services, and a demo with live traffic.

  --no-demo           Start without demo data and live traffic
  --shards N          Number of ClickHouse servers, which share the accounts and use about 250 MB each (default: 1)
  --collector-port N  Port of the collector, which receives events over HTTP (default: 8081, or a free port)
  --help              Show this help

  PORT                Port of the API (default: 8080, or a free port). Metrics are on PORT + 2 to PORT + 5, or free ports
  METERLINE_DATA_DIR  Directory for data and logs (default: .meterline)
  CLICKHOUSE_URL      Use this ClickHouse instead of the embedded one (with CLICKHOUSE_USER, _PASSWORD, _DATABASE)
  REDIS_URL           Use this Redis instead of a local one. Requires appendonly yes and appendfsync always

The services also get all other variables, such as CATALOG, PRICE_BOOK, ALERT_SMTP_URL and ALERT_SMTP_FROM: see docs/configuration.md`;

export interface CommandLine {
  readonly demo: boolean;
  /** Number of embedded ClickHouse servers. A start fails if the data directory has the data of another number of servers. */
  readonly shards: number;
  readonly collectorPort: number | undefined;
  readonly help: boolean;
}

const portText = wholeNumberVariable(0, 65_535);

export function parseCommandLine(args: string[]): CommandLine {
  try {
    const { values, tokens } = parseArgs({
      args,
      tokens: true,
      options: {
        'no-demo': { type: 'boolean', default: false },
        shards: { type: 'string', default: '1' },
        'collector-port': { type: 'string' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    const names = tokens.flatMap((token) => (token.kind === 'option' ? token.name : []));
    const repeated = names.find((name, index) => names.indexOf(name) < index);
    if (repeated !== undefined) throw new RangeError(`--${repeated} must not be repeated`);
    if (!/^[1-8]$/.test(values.shards)) throw new RangeError('--shards must be a number from 1 to 8');
    const port = portText.optional().safeParse(values['collector-port']);
    if (!port.success) throw new RangeError(`--collector-port ${port.error.issues[0]?.message}`);
    return { demo: !values['no-demo'], shards: Number(values.shards), collectorPort: port.data, help: values.help };
  } catch (cause) {
    const port = args.some((arg) => /^--port\b/.test(arg)) ? '; the variable PORT sets the port of the API' : '';
    throw new EnvError([`${cause instanceof Error ? cause.message : cause} (see npm start -- --help)${port}`]);
  }
}

export const environment = z.object({
  METERLINE_DATA_DIR: z
    .string()
    .default(DEFAULT_DATA_DIR)
    .describe('Directory for data and logs of a local stack, which `meterline` uses to find it.'),
  REDIS_URL: redisUrlVariable.optional(),
  CLICKHOUSE_URL: clickHouseUrlVariable.optional(),
  CLICKHOUSE_USER: z.string().optional(),
  CLICKHOUSE_PASSWORD: z.string().optional(),
  CLICKHOUSE_DATABASE: z.string().default('meterline'),
  /** Required if CLICKHOUSE_URL has several servers. */
  CLICKHOUSE_CLUSTER: z.string().optional(),
  ...queueVariables,
  /** Port of the API (default: 8080, or any free port if 8080 is in use). */
  PORT: portText.optional(),
  /** Secret that signs page cursors (default: derived from the secret of the data directory). */
  CURSOR_SECRET: z.string().optional(),
});

export interface Env extends z.output<typeof environment> {
  readonly inherited: NodeJS.ProcessEnv;
}

export function readEnv(inherited: NodeJS.ProcessEnv): Env {
  return { ...readEnvironment(environment, inherited), inherited };
}
