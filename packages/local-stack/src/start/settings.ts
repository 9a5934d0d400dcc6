/** The settings of `npm start`: its command line and its environment, read once. Source: DESIGN section 8. */
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

/** Where the meterline command looks for a local stack by default. */
export const DEFAULT_DATA_DIR = '.meterline';

export const HELP = `Usage: npm start [-- [--no-demo] [--shards N] [--collector-port N]]

Runs Meterline on this machine: ClickHouse, Redis, the services, and a demo with live traffic.

  --no-demo           start empty: neither history nor live traffic
  --shards N          ClickHouse as N servers that share the accounts, each with some 250 MB of memory (1)
  --collector-port N  where events are sent to over HTTP (8081, or any free port if that is taken)
  --help              show this

  PORT                where the API listens (8080, or any free port if that is taken)
  METERLINE_DATA_DIR  where data and logs are kept (.meterline)
  CLICKHOUSE_URL      use this ClickHouse (with CLICKHOUSE_USER, _PASSWORD, _DATABASE) instead of the embedded one
  REDIS_URL           use this Redis instead of a local one; it needs appendonly yes and appendfsync always`;

export interface CommandLine {
  readonly demo: boolean;
  /** How many embedded ClickHouse servers; their data is apart from that of one server. */
  readonly shards: number;
  readonly collectorPort: number | undefined;
  readonly help: boolean;
}

const portText = wholeNumberVariable(0, 65_535);

/** @throws EnvError */
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
    if (repeated !== undefined) throw new RangeError(`--${repeated} is given more than once; give it once`);
    if (!/^[1-8]$/.test(values.shards)) throw new RangeError('--shards must be a number from 1 to 8');
    const port = portText.optional().safeParse(values['collector-port']);
    if (!port.success) throw new RangeError(`--collector-port ${port.error.issues[0]?.message}`);
    return { demo: !values['no-demo'], shards: Number(values.shards), collectorPort: port.data, help: values.help };
  } catch (cause) {
    throw new EnvError([`${cause instanceof Error ? cause.message : cause} (see npm start -- --help)`]);
  }
}

export const environment = z.object({
  METERLINE_DATA_DIR: z
    .string()
    .default(DEFAULT_DATA_DIR)
    .describe('Where a local stack keeps data and logs, and where `meterline` looks for one.'),
  /** Set: that server is used, and none started. */
  REDIS_URL: redisUrlVariable.optional(),
  /** Set: that server is used, and none started. */
  CLICKHOUSE_URL: clickHouseUrlVariable.optional(),
  CLICKHOUSE_USER: z.string().optional(),
  CLICKHOUSE_PASSWORD: z.string().optional(),
  CLICKHOUSE_DATABASE: z.string().default('meterline'),
  /** Where CLICKHOUSE_URL names several servers. */
  CLICKHOUSE_CLUSTER: z.string().optional(),
  /** Where the ingest service looks for jobs, and the demo puts them. */
  ...queueVariables,
  /** Unset: 8080, or any free port if that is taken. */
  PORT: portText.optional(),
  /** Unset: a random one, kept in the data directory. */
  CURSOR_SECRET: z.string().optional(),
});

export interface Env extends z.output<typeof environment> {
  /** The whole environment, for the services, which read their own settings from it. */
  readonly inherited: NodeJS.ProcessEnv;
}

/** @throws EnvError */
export function readEnv(inherited: NodeJS.ProcessEnv): Env {
  return { ...readEnvironment(environment, inherited), inherited };
}
