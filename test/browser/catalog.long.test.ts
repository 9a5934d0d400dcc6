/** The page of a platform whose catalog file adds billing dimensions. */
import { beforeAll, expect, it } from '@jest/globals';
import { addDimensions } from '@meterline/catalog';
import { event } from '../harness/events.js';
import {
  chooseOption,
  exported,
  figure,
  setFilter,
  showView,
  tableRows,
  totalBecomes,
  useExplorer,
  viewOf,
} from './browser.js';

const GPU = { billingDimension: 'gpu_cluster_runtime_seconds', resourceType: 'gpu_cluster', unit: 'seconds' };
const CALLS = { billingDimension: 'agent_tool_calls_count', resourceType: 'agent', unit: 'count' };

const explorer = useExplorer(() => {
  addDimensions([GPU, CALLS]);
  return {};
});

beforeAll(async () => {
  const used = { at: '2025-11-14T09:00:00Z', resourceUuid: '' };
  await explorer().api.seed([
    event({ ...used, ...GPU, resourceName: 'h200', usage: '1000.5', cost: '300' }),
    event({ ...used, ...CALLS, resourceName: 'support', usage: '8', cost: '2' }),
  ]);
});

it('a link to an added dimension shows its usage in its own unit', async () => {
  const { key } = explorer();
  const view = 'account=acme&group=resource_name&dimension=gpu_cluster_runtime_seconds&measure=usage&sort=-usage';
  const { page, offences } = await explorer().visit({ key, view });
  expect((await tableRows(page))[0]).toContain('1,000.5 seconds');
  expect(await figure(page, 'Usage').textContent()).toBe('1,000.5 seconds');
  expect(viewOf(page)).toMatchObject({ measure: 'usage', sort: '-usage' });
  expect(offences).toEqual([]);
});

it('added resource types and dimensions are groups, choices of filters, and columns of a CSV file', async () => {
  const page = await explorer().open('group=billing_dimension');
  const rows = await tableRows(page);
  const names = rows.map(([name]) => name);
  expect(names[0]).toBe('Gpu clusterGpu cluster');
  expect(names).toContain('Agent tool callsAgent');
  const { lines } = await exported(page, 'Groups');
  expect(lines[1]).toContain('gpu_cluster,gpu_cluster_runtime_seconds');
  expect(lines[1]).toContain('300,1000.5,seconds');

  await showView(page, 'account=acme');
  await setFilter(page, 'Resource type', { values: ['Gpu cluster'] });
  await totalBecomes(page, '$300.00');
  await chooseOption(page, 'Measure', 'Usage');
  expect(await figure(page, 'Usage').textContent()).toBe('1,000.5 seconds');
  await setFilter(page, 'Billing dimension', { values: ['Agent tool calls'] });
  expect(viewOf(page)).toMatchObject({ dimension: CALLS.billingDimension });
  expect(viewOf(page)).not.toHaveProperty('type');
});
