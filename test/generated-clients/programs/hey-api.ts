import { client } from './hey-api/client.gen.js';
import { getAccountMetrics } from './hey-api/index.js';

client.setConfig({ baseUrl: process.env.METERLINE_URL ?? '', auth: () => process.env.METERLINE_API_KEY });
const { data, error, response } = await getAccountMetrics({
  path: { accountId: 'acme' },
  query: {
    startTime: '2025-10-01T00:00:00Z',
    endTime: '2025-10-02T00:00:00Z',
    groupBy: ['workspace', 'billing_dimension'],
    resourceName: ['crawler, one', 'crawler & two'],
  },
});
if (!data) throw new Error(`${response?.status}: ${error?.message}`);
for (const { workspace, summary } of data.data) console.log(workspace, summary.cost, summary.usage);
