/** The API reference in a browser, which sends requests to its own service. */
import { expect, it } from '@jest/globals';
import type { Page } from 'playwright-core';
import { startCollectorFixture } from '../harness/collector.js';
import { event } from '../harness/events.js';
import { useExplorer } from './browser.js';

const explorer = useExplorer();

async function authorize(page: Page, key: string) {
  await page.getByRole('button', { name: 'Authorize' }).click();
  const dialog = page.locator('.auth-container').first();
  await dialog.locator('input:focus').waitFor();
  await dialog.locator('input').fill(key);
  await dialog.getByRole('button', { name: 'Apply credentials' }).click();
  await dialog.getByRole('button', { name: 'Close' }).click();
}

it('the API reference sends a request with a key, and shows the exact response and code for the request', async () => {
  const { api, key } = explorer();
  await api.seed([event({ accountId: 'acme', at: '2025-10-01T10:00:00Z', cost: '123456789.000000000001' })]);
  // Swagger UI waits by the clock of the page, which therefore must run.
  const { page, offences } = await explorer().visit({ path: 'docs', now: 'real' });
  await authorize(page, key);

  const send = async (summary: string) => {
    const operation = page.locator('.opblock', { hasText: summary });
    await operation.locator('.opblock-summary-control').click();
    await operation.getByText('Try it out').click();
    await operation.getByRole('button', { name: 'Execute' }).click();
    const response = operation.locator('.live-responses-table .response');
    await response.waitFor();
    expect([summary, await response.locator('.response-col_status').textContent()]).toEqual([summary, '200']);
    return { operation, response };
  };
  // The list has parameters that only the newest API version knows.
  await send('List the accounts of the caller');
  await send('List the events behind a total');
  const { operation, response } = await send('Get usage and cost of all accounts of the caller');
  expect(await response.locator('.highlight-code').first().textContent()).toContain(
    '"totalCost": 123456789.000000000001\n',
  );

  const code = operation.locator('.request-snippets');
  expect(await code.textContent()).toContain(`-H 'Authorization: Bearer ${key}'`);
  await code.getByText('TypeScript').click();
  // Optional parameters have at most their default: a filter would change the total.
  const defaults = 'withoutResourceUuid=false&excludeWithoutResourceUuid=false&limit=100';
  const window = 'startTime=2025-10-01T00%3A00%3A00Z&endTime=2025-10-03T00%3A00%3A00Z';
  expect(await code.textContent()).toContain(`await fetch("${api.url}/v0/metrics?${window}&${defaults}"`);
  expect(offences).toEqual([]);
});

it('the reference of the collector sends an example of each media type, and the collector accepts it', async () => {
  const collector = await startCollectorFixture();
  try {
    const { page } = await explorer().visit({ path: 'docs', now: 'real' });
    await page.goto(`${collector.service.url}/docs`);
    await authorize(page, await collector.key('acme', 'emitter'));
    const operation = page.locator('.opblock', { hasText: 'Send events' });
    await operation.locator('.opblock-summary-control').click();
    await operation.getByText('Try it out').click();
    const mediaType = operation.getByLabel('Request content type');
    const statuses: Record<string, number> = {};
    for (const type of await mediaType.locator('option').allTextContents()) {
      await mediaType.selectOption(type);
      const received = page.waitForResponse((response) => response.request().method() === 'POST');
      await operation.getByRole('button', { name: 'Execute' }).click();
      statuses[type] = (await received).status();
    }
    expect(statuses).toEqual({
      'application/json': 202,
      'application/x-ndjson': 202,
      'application/cloudevents+json': 202,
      'application/cloudevents-batch+json': 202,
    });
  } finally {
    await collector.close();
  }
});
