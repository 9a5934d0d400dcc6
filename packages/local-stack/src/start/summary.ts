import { DEFAULT_DATA_DIR } from './settings.js';
import type { RunningStack } from './stack.js';

export interface SummaryOptions {
  /** METERLINE_DATA_DIR as it is set, and as an absolute path. */
  readonly dataDir: { readonly name: string; readonly path: string };
  readonly demo: boolean;
  readonly now: Date;
}

/** What `npm start` prints when the stack runs. The commands can be pasted as they are. */
export function summarize({ addresses, metricsUrls }: RunningStack, options: SummaryOptions): string {
  const { apiUrl, account, adminKey } = addresses;
  const { dataDir, demo, now } = options;
  const day = now.toISOString().slice(0, 10);
  const nextDay = new Date(Date.parse(day) + 24 * 60 * 60 * 1000).toISOString().slice(0, 10);
  const query = `startTime=${day}T00:00:00Z&endTime=${nextDay}T00:00:00Z&groupBy=resource_name`;
  return `
Meterline is running.

  Web page   ${apiUrl}/
  API        ${apiUrl}
  Account    ${account}
  Admin key  ${adminKey}
  Data, logs ${dataDir.path}
  Metrics    ${metricsUrls.join('\n             ')}
${dataDir.name === DEFAULT_DATA_DIR ? '' : forOtherTerminals(dataDir.path)}${demo ? '' : HOW_TO_SEND}
What did the account use today, and what did it cost?

  curl -s -H 'Authorization: Bearer ${adminKey}' \\
    '${apiUrl}/v0/accounts/${account}/metrics?${query}'

Ctrl-C stops everything; the data stays.
`;
}

const HOW_TO_SEND = `
It is empty. To send it events, a JSON object a line:

  npx meterline emit FILE
`;

function forOtherTerminals(path: string): string {
  return `
In another terminal the meterline command finds it after

  export METERLINE_DATA_DIR='${path.replaceAll("'", "'\\''")}'
`;
}
