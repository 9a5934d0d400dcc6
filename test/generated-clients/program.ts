import createClient from 'openapi-fetch';
import type { paths } from './schema.js';

const client = createClient<paths>({
  baseUrl: process.env.METERLINE_URL ?? '',
  headers: { Authorization: `Bearer ${process.env.METERLINE_API_KEY}` },
});
const { data, error, response } = await client.GET('/v0/accounts/{accountId}/metrics', {
  params: {
    path: { accountId: 'acme' },
    query: {
      startTime: '2025-10-01T00:00:00Z',
      endTime: '2025-10-02T00:00:00Z',
      groupBy: ['workspace', 'billing_dimension'],
      resourceName: ['crawler, one', 'crawler & two'],
    },
  },
});
if (!data) throw new Error(`${response.status}: ${error.message}`);
for (const { workspace, summary } of data.data) console.log(workspace, summary.cost, summary.usage);
