/** Reads the environment variables of the collector. */
import { burstConstant, httpVariables, type RateLimits, rateLimit, rateVariable, withTokens } from '@meterline/api';
import {
  catalogVariable,
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
    'Bytes in flight of all accounts per process: bodies and unread responses. One account may hold a quarter.',
  ),
  platformMaxBytes: constant(
    32 * 1024 * 1024,
    'The separate limit for keys and tokens that send for all accounts. One of them may hold half.',
  ),
  platformRate: constant(2_000, 'Requests per second of a key or token that sends for all accounts.'),
  holdMs: constant(
    5,
    'How long a request waits to be combined with other requests in one job. 0: each request is a job.',
  ),
  writeMs: constant(5_000, 'Timeout for making events durable in Redis. After the timeout, the sender gets 503.'),
};

export const environment = z.object({
  ...processVariables,
  ...httpVariables,
  PORT: wholeNumberVariable(0, 65_535).default(8081).describe('The port of the API. 0: any free one.'),
  ...queueVariables,
  PRICE_BOOK: priceBookVariable,
  CATALOG: catalogVariable,
  ...rateVariable(2_000),
  METERLINE_CONSTANTS: constantsVariable(constants),
});

export type Env = ReturnType<typeof readEnv>;

/** Returns the rate limits of platform callers, which send for all accounts. They have no limit per account. */
export function platformRates({ METERLINE_CONSTANTS: { burstSeconds, platformRate } }: Env): RateLimits {
  return { callerRate: rateLimit(platformRate, burstSeconds) };
}

export function readEnv(variables: NodeJS.ProcessEnv) {
  return readEnvironment(environment.transform(withTokens), variables);
}
