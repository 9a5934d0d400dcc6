import { z } from 'zod';

/** A variable that is set to nothing counts as not set. */
const text = z
  .string()
  .optional()
  .transform((value) => value || undefined);

const environmentSchema = z.object({
  REDIS_URL: text,
  CLICKHOUSE_URL: text,
  CLICKHOUSE_USER: text,
  CLICKHOUSE_PASSWORD: text,
  CLICKHOUSE_DATABASE: text,
  QUEUE_PREFIX: text,
  METERLINE_API_URL: text,
  METERLINE_API_KEY: text,
  METERLINE_ACCOUNT: text,
  METERLINE_CONFIG: text,
  METERLINE_DATA_DIR: text,
  PRICE_BOOK: text,
  XDG_CONFIG_HOME: text,
  HOME: text,
  NO_COLOR: text,
  TERM: text,
});
export type Environment = z.output<typeof environmentSchema>;

/** The variables that the command reads; nothing else in this package looks at the environment. */
export function readEnvironment(variables: NodeJS.ProcessEnv = process.env): Environment {
  return environmentSchema.parse(variables);
}
