import type { RunningStack } from './stack.js';

/** What someone needs who has just started the stack; the curl command works as it is pasted. */
export function summarize({ addresses, metricsUrls }: RunningStack, dataDir: string, now: Date): string {
  const { apiUrl, account, adminKey } = addresses;
  const day = now.toISOString().slice(0, 10);
  const nextDay = new Date(Date.parse(day) + 24 * 60 * 60 * 1000).toISOString().slice(0, 10);
  const query = `startTime=${day}T00:00:00Z&endTime=${nextDay}T00:00:00Z&groupBy=resource_name`;
  return `
Meterline is running.

  API        ${apiUrl}
  Account    ${account}
  Admin key  ${adminKey}
  Data, logs ${dataDir}
  Metrics    ${metricsUrls.join('\n             ')}

What did the account use today, and what did it cost?

  curl -s -H 'Authorization: Bearer ${adminKey}' \\
    '${apiUrl}/v0/accounts/${account}/metrics?${query}'

Ctrl-C stops everything; the data stays.
`;
}
