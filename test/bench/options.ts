import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { z } from 'zod';

export interface BenchOptions {
  /** Events in the large data set. */
  readonly events: number;
  /** The bench to run; undefined: all. */
  readonly only: string | undefined;
  /** The file to which the figures are written as JSON. */
  readonly out: string;
  /** The folder in which the run creates, and later removes, its own folder. */
  readonly dataDir: string;
}

const MIN_EVENTS = 100_000;

/** The command line is wrong; the message is the usage. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** @throws UsageError */
export function readOptions(args: string[], names: readonly string[]): BenchOptions {
  const usage = `usage: npm run bench -- [--events N (at least ${MIN_EVENTS})] [--only ${names.join('|')}] [--out FILE]`;
  const options = { events: { type: 'string' }, only: { type: 'string' }, out: { type: 'string' } } as const;
  const schema = z.object({
    events: z.coerce.number().int().min(MIN_EVENTS).default(20_000_000),
    only: z.enum(names).optional(),
    out: z.string().optional(),
  });
  try {
    const { events, only, out } = schema.parse(parseArgs({ args, options }).values);
    const dataDir = resolve(process.env.METERLINE_DATA_DIR ?? '.meterline');
    return { events, only, out: resolve(out ?? join(dataDir, 'bench.json')), dataDir };
  } catch (error) {
    throw new UsageError(usage, { cause: error });
  }
}
