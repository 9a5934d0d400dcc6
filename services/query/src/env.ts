/** The service's environment, read once. Source: DESIGN section 8. */
import { httpVariables, requireAllOrNone, type WithTokens, withTokens } from '@meterline/api';
import { readEnvironment, serverVariables, wholeNumberVariable } from '@meterline/service';
import { z } from 'zod';

const MIN_CURSOR_SECRET = 32;
/** It becomes part of commands for a shell, so it has none of the characters with a meaning there. */
const WEB_ADDRESS = /^https?:\/\/[\w.:[\]-]+(\/[\w.~%-]+)*\/?$/;

const environment = z
  .object({
    ...serverVariables,
    ...httpVariables,
    /** 0: any free port. */
    PORT: wholeNumberVariable(0, 65_535).default(8080),
    /** The collector's address, as producers reach it: the page shows it where an account has no usage yet. */
    COLLECTOR_URL: z
      .string()
      .regex(WEB_ADDRESS, 'must be a URL such as https://collector.example.com')
      .transform((url) => url.replace(/\/$/, ''))
      .optional(),
    /** Signs cursors. Every process behind one address must have the same. */
    CURSOR_SECRET: z
      .string(`is missing: set it to at least ${MIN_CURSOR_SECRET} random characters`)
      .min(MIN_CURSOR_SECRET, `must have at least ${MIN_CURSOR_SECRET} characters`),
    /** `events`: read every answer from the events themselves, never from cells. Slow; for comparisons and emergencies. */
    METRICS_SOURCE: z.enum(['cells', 'events'], 'must be cells or events').default('cells'),
    /** Groups that may be stored in 24 hours of one account's answers, when their second page is asked for. */
    MAX_STORED_GROUPS: wholeNumberVariable(100, 1_000_000_000).default(5_000_000),
    /** Bytes of answers that are kept as long as they are the answers still. 0: each is computed. */
    ANSWER_CACHE_BYTES: wholeNumberVariable(0, 100_000_000_000).default(64 * 1024 * 1024),
    QUERY_STATEMENTS: wholeNumberVariable(1, 1_000).default(8),
    QUERY_ACCOUNT_STATEMENTS: wholeNumberVariable(1, 1_000).default(3),
    QUERY_CALLER_STATEMENTS: wholeNumberVariable(1, 1_000).default(2),
    QUERY_ACCOUNT_RATE: wholeNumberVariable(1, 100_000).default(100),
    QUERY_ACCOUNT_BURST: wholeNumberVariable(1, 1_000_000).default(400),
    QUERY_CALLER_RATE: wholeNumberVariable(1, 100_000).default(50),
    QUERY_CALLER_BURST: wholeNumberVariable(1, 1_000_000).default(200),
    /** How long a request may wait for its turn. */
    QUERY_MAX_WAIT_MS: wholeNumberVariable(1, 60_000).default(5_000),
    /** How many requests of one account may wait at once, in this process. */
    QUERY_MAX_WAITING: wholeNumberVariable(1, 10_000).default(100),
    /** How long ClickHouse may work on one statement, and in how much memory. */
    QUERY_STATEMENT_MS: wholeNumberVariable(1_000, 25_000).default(15_000),
    QUERY_STATEMENT_MB: wholeNumberVariable(16, 1_000_000).default(1_024),
    /** Bytes of answers that may be computed and not sent yet; one caller may have a quarter of them. */
    MAX_UNSENT_BYTES: wholeNumberVariable(1_000_000, 100_000_000_000).default(64 * 1024 * 1024),
  })
  .superRefine(requireAllOrNone);

export interface Env extends WithTokens<z.output<typeof environment>> {}

/** @throws EnvError */
export function readEnv(variables: NodeJS.ProcessEnv): Env {
  return withTokens(readEnvironment(environment, variables));
}
