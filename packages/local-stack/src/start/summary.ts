import { DEFAULT_DATA_DIR } from './settings.js';
import { LOCAL_HOSTS, type RunningStack } from './stack.js';

export interface SummaryOptions {
  /** METERLINE_DATA_DIR as it is set, and as an absolute path. */
  readonly dataDir: { readonly name: string; readonly path: string };
  readonly demo: boolean;
  readonly now: Date;
}

/** What `npm start` prints when the stack runs. The commands can be pasted as they are. */
export function summarize({ addresses, metricsUrls }: RunningStack, options: SummaryOptions): string {
  const { apiUrl, collectorUrl, account, adminKey, emitterKey } = addresses;
  const { dataDir, demo, now } = options;
  const day = now.toISOString().slice(0, 10);
  const nextDay = new Date(Date.parse(day) + 24 * 60 * 60 * 1000).toISOString().slice(0, 10);
  const event = {
    eventId: 'my-first-event',
    workspace: 'production',
    resourceType: 'agent',
    resourceName: 'my-agent',
    billingDimension: 'agent_compute_runtime_gbs',
    usage: '12.5',
    timestamp: `${now.toISOString().slice(0, 19)}Z`,
  };
  const query = `startTime=${day}T00:00:00Z&endTime=${nextDay}T00:00:00Z&groupBy=resource_name`;
  return `
Meterline is running.

  Web page   ${apiUrl}/
  API        ${apiUrl}
  Collector  ${collectorUrl}
  Account    ${account}
  Admin key  ${adminKey}
  Data, logs ${dataDir.path}
  Webhooks   may go to ${LOCAL_HOSTS} too, also without TLS
  Metrics    ${metricsUrls.join('\n             ')}
${dataDir.name === DEFAULT_DATA_DIR ? '' : forOtherTerminals(dataDir.path)}
Send an event${demo ? '' : ', for the account is empty'}:

  curl -s -H 'Authorization: Bearer ${emitterKey}' -H 'Content-Type: application/json' \\
    '${collectorUrl}/v0/accounts/${account}/events' \\
    -d '${JSON.stringify(event)}'

What did the account use today, and what did it cost?

  curl -s -H 'Authorization: Bearer ${adminKey}' \\
    '${apiUrl}/v0/accounts/${account}/metrics?${query}'

Ctrl-C stops everything; the data stays.
`;
}

function forOtherTerminals(path: string): string {
  return `
In another terminal the meterline command finds it after

  export METERLINE_DATA_DIR='${path.replaceAll("'", "'\\''")}'
`;
}
