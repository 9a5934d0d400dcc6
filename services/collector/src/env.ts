/** The service's environment, read once. */
import { burstConstant, httpVariables, type RateLimits, rateLimit, rateVariable, withTokens } from '@meterline/api';
import {
  constant,
  constantsVariable,
  priceBookVariable,
  processVariables,
  queueVariables,
  readEnvironment,
  wholeNumberVariable,
} from '@meterline/service';
import { z } from 'zod';

export const constants = {
  ...burstConstant(2),
  maxBytes: constant(
    64 * 1024 * 1024,
    'Bytes of bodies and responses of accounts in flight in a process; one account may have a quarter.',
  ),
  platformMaxBytes: constant(
    32 * 1024 * 1024,
    'The same of keys and tokens that send for all accounts, besides; one of them may have half.',
  ),
  platformRate: constant(2_000, 'Requests per second of a key or token that sends for all accounts.'),
  holdMs: constant(
    5,
    'How long a request waits for others, to be written together in one job. 0: each is written alone.',
  ),
  writeMs: constant(5_000, 'How long Redis may take to make events durable before the sender is told to try again.'),
};

export const environment = z.object({
  ...processVariables,
  ...httpVariables,
  PORT: wholeNumberVariable(0, 65_535).default(8081).describe('The port of the API. 0: any free one.'),
  ...queueVariables,
  PRICE_BOOK: priceBookVariable,
  ...rateVariable(2_000),
  METERLINE_CONSTANTS: constantsVariable(constants),
});

export type Env = ReturnType<typeof readEnv>;

/** A caller of all accounts is counted alone: it has no account to share a limit with. */
export function platformRates({ METERLINE_CONSTANTS: { burstSeconds, platformRate } }: Env): RateLimits {
  return { callerRate: rateLimit(platformRate, burstSeconds) };
}

/** @throws EnvError */
export function readEnv(variables: NodeJS.ProcessEnv) {
  return readEnvironment(environment.transform(withTokens), variables);
}
