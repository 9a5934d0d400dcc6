/** The service's environment, read once. */
import { httpVariables, requireAllOrNone, type WithTokens, withTokens } from '@meterline/api';
import { processVariables, queueVariables, readEnvironment, wholeNumberVariable } from '@meterline/service';
import { z } from 'zod';

const environment = z
  .object({
    ...processVariables,
    ...httpVariables,
    /** 0: any free port. */
    PORT: wholeNumberVariable(0, 65_535).default(8081),
    ...queueVariables,
    /** That of the ingest worker, which checks the same events with it. */
    PRICE_BOOK: z.string().optional(),
    /**
     * `checked`: events are taken only while Redis says that it writes each of them through to its disk before it answers.
     * `assumed`: the operator knows so. For a managed Redis that does not tell its configuration.
     */
    REDIS_DURABILITY: z.enum(['checked', 'assumed'], 'must be checked or assumed').default('checked'),
    COLLECTOR_ACCOUNT_RATE: wholeNumberVariable(1, 1_000_000).default(2_000),
    COLLECTOR_ACCOUNT_BURST: wholeNumberVariable(1, 1_000_000).default(4_000),
    COLLECTOR_CALLER_RATE: wholeNumberVariable(1, 1_000_000).default(1_000),
    COLLECTOR_CALLER_BURST: wholeNumberVariable(1, 1_000_000).default(2_000),
    /** Bytes of bodies and answers that may be under way; one account may have a quarter of them. */
    COLLECTOR_MAX_BYTES: wholeNumberVariable(24 * 1024 * 1024, 100_000_000_000).default(64 * 1024 * 1024),
    /** How long a request may wait for others, to be written together with them. 0: each is written alone. */
    COLLECTOR_HOLD_MS: wholeNumberVariable(0, 1_000).default(5),
    /** How long Redis may take to make events durable. */
    COLLECTOR_WRITE_MS: wholeNumberVariable(100, 25_000).default(5_000),
  })
  .superRefine(requireAllOrNone);

export interface Env extends WithTokens<z.output<typeof environment>> {}

/** @throws EnvError */
export function readEnv(variables: NodeJS.ProcessEnv): Env {
  return withTokens(readEnvironment(environment, variables));
}
