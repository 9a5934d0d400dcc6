import { allowedHostsVariable } from '@meterline/service/alerts/webhook-target';
import {
  constant,
  constantsVariable,
  lockConstant,
  queueVariables,
  readEnvironment,
  serverVariables,
  statementMemoryVariable,
} from '@meterline/service/environment';
import { z } from 'zod';

export const constants = {
  evaluateEveryMs: constant(
    20_000,
    'How often alerts are evaluated. A crossed threshold is found within a minute, even if one evaluation fails.',
  ),
  ...lockConstant,
  outboxEveryMs: constant(1_000, 'How often due webhooks are claimed from the outbox.'),
  retryMs: constant(
    10_550,
    'The wait after the first failed attempt to deliver a webhook. It doubles after each further one: 14 attempts in 24 hours.',
  ),
};

export const environment = z.object({
  ...serverVariables,
  ...queueVariables,
  STATEMENT_MB: statementMemoryVariable(1_024),
  ALERT_ALLOWED_HOSTS: allowedHostsVariable,
  ALERT_PROXY: z
    .url({ protocol: /^https?$/, error: 'must be a URL such as http://proxy.internal:3128' })
    .optional()
    .describe(
      'A proxy for webhooks, which must reject private addresses. Hosts in `ALERT_ALLOWED_HOSTS` are reached directly.',
    ),
  METERLINE_CONSTANTS: constantsVariable(constants),
});

export type Env = z.output<typeof environment>;

export function readEnv(variables: NodeJS.ProcessEnv): Env {
  return readEnvironment(environment, variables);
}
