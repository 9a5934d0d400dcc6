import { getAccountMetrics } from './orval/client.js';

const answer = await getAccountMetrics(
  'acme',
  {
    startTime: '2025-10-01T00:00:00Z',
    endTime: '2025-10-02T00:00:00Z',
    groupBy: ['workspace', 'billing_dimension'],
    resourceName: ['crawler, one', 'crawler & two'],
  },
  { headers: { Authorization: `Bearer ${process.env.METERLINE_API_KEY}` } },
);
// Only a request with If-None-Match gets it.
if (answer.status === 304) throw new Error('what was answered before is the answer still');
if (answer.status !== 200) throw new Error(`${answer.status}: ${answer.data.message}`);
for (const { workspace, summary } of answer.data.data) console.log(workspace, summary.cost, summary.usage);
