import { allowedHostsVariable, mailSenderVariable } from '@meterline/service/alerts/webhook-target';
import {
  constant,
  constantsVariable,
  EnvError,
  lockConstant,
  queueVariables,
  readEnvironment,
  serverVariables,
  statementMemoryVariable,
  webAddressVariable,
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
  ALERT_SMTP_URL: z
    .url({ protocol: /^smtps?$/, error: 'must be a URL such as smtps://user:password@smtp.example.com:465' })
    .optional()
    .describe(
      'Mail server for alerts by e-mail: `smtps://` with TLS, or `smtp://`, which uses STARTTLS if the server offers it (`?requireTLS=true`: always). Set it together with `ALERT_SMTP_FROM`.',
    ),
  ALERT_SMTP_FROM: mailSenderVariable,
  API_PUBLIC_URL: webAddressVariable('https://billing.example.com').describe(
    'Public base URL of the query service, for the link to the page in messages: its `PUBLIC_URL`. Not set: messages have no link.',
  ),
  METERLINE_CONSTANTS: constantsVariable(constants),
});

export type Env = z.output<typeof environment>;

export function readEnv(variables: NodeJS.ProcessEnv): Env {
  const env = readEnvironment(environment, variables);
  if ((env.ALERT_SMTP_URL === undefined) !== (env.ALERT_SMTP_FROM === undefined)) {
    throw new EnvError(['ALERT_SMTP_URL and ALERT_SMTP_FROM must be set together, or neither of them']);
  }
  return env;
}
