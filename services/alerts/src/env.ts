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
    'How often thresholds are judged, so that one is found within a minute of its event also when a turn fails.',
  ),
  ...lockConstant,
  outboxEveryMs: constant(1_000, 'How often webhooks that are due are put into their queue.'),
  retryMs: constant(
    10_550,
    'How long after the first attempt a webhook is sent again; twice as long after each further one, 14 attempts in 24 hours.',
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
      'A proxy for webhooks, which must reject private addresses; hosts of `ALERT_ALLOWED_HOSTS` are reached directly.',
    ),
  METERLINE_CONSTANTS: constantsVariable(constants),
});

export type Env = z.output<typeof environment>;

/** @throws EnvError */
export function readEnv(variables: NodeJS.ProcessEnv): Env {
  return readEnvironment(environment, variables);
}
