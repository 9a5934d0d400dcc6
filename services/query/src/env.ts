/** Reads the environment variables of the query service. */
import { burstConstant, httpVariables, originsVariable, rateVariable, withTokens } from '@meterline/api/environment';
import { allowedHostsVariable, mailSenderVariable } from '@meterline/service/alerts/webhook-target';
import {
  catalogVariable,
  constant,
  constantsVariable,
  readEnvironment,
  serverVariables,
  statementMemoryVariable,
  webAddressVariable,
  wholeNumberVariable,
} from '@meterline/service/environment';
import { z } from 'zod';

const MIN_CURSOR_SECRET = 32;
const MiB = 1024 * 1024;

export const constants = {
  ...burstConstant(4),
  statements: constant(
    0,
    "Maximum number of concurrent statements of a process. Half of them are reserved for accounts whose statements are usually short. 0: twice the max_threads of the service's ClickHouse user, which is by default the number of processors; at least 4.",
  ),
  accountStatements: constant(
    3,
    'Maximum concurrent statements of one account, so that three busy accounts do not block a fourth.',
  ),
  callerStatements: constant(2, 'Maximum concurrent statements of one caller of an account.'),
  maxWaitMs: constant(5_000, 'Timeout for acquiring a statement permit. People do not wait longer for a page.'),
  maxWaiting: constant(
    100,
    'Maximum waiting requests of one account in a process. All accounts together may have ten times as many.',
  ),
  statementMs: constant(15_000, 'Timeout of a ClickHouse statement. Below the timeouts of usual proxies.'),
  maxStoredGroups: constant(
    5_000_000,
    'Maximum groups stored for one account within 24 hours. Results are stored when their second page is requested. One caller may use a quarter.',
  ),
  cacheBytes: constant(64 * MiB, 'Memory of the response cache. One account may use a quarter. 0: no cache.'),
  maxInFlightBytes: constant(
    64 * MiB,
    'Maximum bytes of responses that are computed and not sent yet. One account may use a quarter.',
  ),
  eventsOnly: constant(
    0,
    '1: read all responses from events instead of rollup rows. The figures are the same, but slower. For comparisons.',
  ),
};

export const environment = z.object({
  ...serverVariables,
  ...httpVariables,
  PORT: wholeNumberVariable(0, 65_535).default(8080).describe('Port of the API. 0: any free port.'),
  COLLECTOR_URL: webAddressVariable('https://collector.example.com').describe(
    'Address of the collector for producers. The page shows it for accounts without usage.',
  ),
  CURSOR_SECRET: z
    .string(`is missing: set it to at least ${MIN_CURSOR_SECRET} random characters`)
    .min(MIN_CURSOR_SECRET, `must have at least ${MIN_CURSOR_SECRET} characters`)
    .describe(
      `Required. Secret that signs cursors, at least ${MIN_CURSOR_SECRET} characters, the same for all processes.`,
    ),
  FRAME_ANCESTORS: originsVariable().describe('Origins whose web pages may embed `/embed`, separated by commas.'),
  CATALOG: catalogVariable,
  STATEMENT_MB: statementMemoryVariable(1_024),
  ALERT_ALLOWED_HOSTS: allowedHostsVariable,
  ALERT_SMTP_FROM: mailSenderVariable,
  ...rateVariable(100),
  METERLINE_CONSTANTS: constantsVariable(constants),
});

export type Env = ReturnType<typeof readEnv>;

export function readEnv(variables: NodeJS.ProcessEnv) {
  return readEnvironment(environment.transform(withTokens), variables);
}
