/** The service's environment, read once. Source: DESIGN section 8. */
import {
  burstConstant,
  httpVariables,
  originsVariable,
  rateVariable,
  webAddressVariable,
  withTokens,
} from '@meterline/api/environment';
import { allowedHostsVariable } from '@meterline/service/alerts/webhook-target';
import {
  constant,
  constantsVariable,
  readEnvironment,
  serverVariables,
  statementMemoryVariable,
  wholeNumberVariable,
} from '@meterline/service/environment';
import { z } from 'zod';

const MIN_CURSOR_SECRET = 32;
const MiB = 1024 * 1024;

export const constants = {
  ...burstConstant(4),
  statements: constant(
    0,
    'Maximum number of concurrent statements of a process. Half of them are reserved for accounts whose statements are usually short. 0: twice the number of processors of ClickHouse.',
  ),
  accountStatements: constant(3, 'Of those, what one account may have, so that three busy ones do not stop a fourth.'),
  callerStatements: constant(2, 'Of those, what one caller of an account may have.'),
  maxWaitMs: constant(5_000, 'How long a request waits for a permit: a person has left by then.'),
  maxWaiting: constant(
    100,
    'How many requests of one account may wait at once in a process; of all together ten times as many.',
  ),
  statementMs: constant(15_000, 'How long ClickHouse may work on one statement: below the time-outs of usual proxies.'),
  maxStoredGroups: constant(
    5_000_000,
    'Groups that may be stored in 24 hours of the results of one account, when their second page is asked for; a caller may have a quarter.',
  ),
  cacheBytes: constant(
    64 * MiB,
    'Memory of the response cache, of which one account may have a quarter. 0: nothing is kept.',
  ),
  maxInFlightBytes: constant(
    64 * MiB,
    'Responses that may be computed and not sent yet; one account may have a quarter of them.',
  ),
  eventsOnly: constant(
    0,
    '1: every response is read from the events alone. The same figures, slower; for comparisons.',
  ),
};

export const environment = z.object({
  ...serverVariables,
  ...httpVariables,
  PORT: wholeNumberVariable(0, 65_535).default(8080).describe('The port of the API. 0: any free one.'),
  COLLECTOR_URL: webAddressVariable('https://collector.example.com').describe(
    "The collector's address as producers reach it: the page shows it for an account without usage.",
  ),
  CURSOR_SECRET: z
    .string(`is missing: set it to at least ${MIN_CURSOR_SECRET} random characters`)
    .min(MIN_CURSOR_SECRET, `must have at least ${MIN_CURSOR_SECRET} characters`)
    .describe(`Required: at least ${MIN_CURSOR_SECRET} characters that sign cursors, the same for all processes.`),
  FRAME_ANCESTORS: originsVariable().describe('Origins whose web pages may embed `/embed`, with commas between them.'),
  STATEMENT_MB: statementMemoryVariable(1_024),
  ALERT_ALLOWED_HOSTS: allowedHostsVariable,
  ...rateVariable(100),
  METERLINE_CONSTANTS: constantsVariable(constants),
});

export type Env = ReturnType<typeof readEnv>;

/** @throws EnvError */
export function readEnv(variables: NodeJS.ProcessEnv) {
  return readEnvironment(environment.transform(withTokens), variables);
}
