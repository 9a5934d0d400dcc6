/** Tests alerts on the page: admins create, edit and delete them, members see them, and the chart shows a budget. */
import { expect, it } from '@jest/globals';
import { MeterlineClient } from '@meterline/client';
import { periodAt, webhookPayload } from '@meterline/service/alerts';
import type { Page } from 'playwright-core';
import { NOW } from '../harness/api.js';
import { event } from '../harness/events.js';
import { accessibilityProblems, showView, tableRows, useExplorer } from './browser.js';

const explorer = useExplorer();

async function open(account: string, role: 'admin' | 'member', now: Date | 'real' = NOW): Promise<Page> {
  const key = await explorer().api.key(account, role);
  const { page } = await explorer().visit({ key, view: `account=${account}&period=month`, now });
  await tableRows(page);
  return page;
}
const focused = (page: Page) => page.locator(':focus').textContent();
/** Clicks outside the sheet and presses Escape, once the sheet has no Close button and must stay open. */
async function dismiss(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Close', exact: true }).waitFor({ state: 'detached' });
  await page.mouse.click(20, 400);
  await page.keyboard.press('Escape');
}
const secretOf = (page: Page) => page.getByRole('status', { name: 'Secret' }).locator('code').textContent();
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();

it('an admin can create an alert with a secret, see its budget, edit it, rotate its secret and delete it', async () => {
  const page = await open('acme', 'admin');
  await press(page, 'Set an alert');
  await page.getByLabel('Name').fill('Monthly spend');
  await page.getByLabel('Amount (USD per month)').fill('0,125');
  await page.getByLabel('Thresholds (percent').fill('50-80');
  await page.getByLabel('Webhook URL').fill('http://example.com/hooks');
  await press(page, 'Create alert');
  await page.getByText(/^Enter one to ten whole numbers/).waitFor();
  await page.getByText(/^Enter an amount above 0/).waitFor();
  await page.getByText(/^Webhook URL must begin with https:\/\//).waitFor();
  expect(await page.locator('[aria-invalid=true]').count()).toBe(3);
  await page.getByLabel('Amount (USD per month)').fill('$150.00');
  await page.getByLabel('Thresholds (percent').fill('100 %, 50, 100');
  await page.getByLabel('Webhook URL').fill('https://example.com/hooks');
  // The secret appears even if the list cannot be read.
  const list = /\/alerts(\?|$)/;
  await page.route(list, (route) => (route.request().method() === 'GET' ? route.abort() : route.continue()));
  await press(page, 'Create alert');
  const first = await secretOf(page);
  expect(first).toMatch(/^whsec_/);
  await page.unroute(list);
  await page.getByText('$150.00 per month').waitFor();
  expect(await page.getByRole('list', { name: 'Thresholds' }).locator('strong').allTextContents()).toEqual([
    '50%',
    '100%',
  ]);
  await dismiss(page);
  expect(await secretOf(page)).toBe(first);
  await press(page, 'Done');
  await press(page, 'Close');
  await page.getByText('50% of the budget of $150.00').waitFor();
  await page.getByText('Budget: $5.00 per day').waitFor();
  await page.getByText('so far + weekday averages of the last 4 weeks', { exact: true }).waitFor();
  await showView(page, 'account=acme&period=month&type=agent');
  expect(await page.getByText('Budget: ').count()).toBe(0);

  await press(page, 'Alerts');
  await press(page, 'Edit');
  expect(await page.locator('input:focus').inputValue()).toBe('Monthly spend');
  await page.getByLabel('Amount (USD per month)').fill('300');
  await press(page, 'Save');
  await page.getByText('$300.00 per month').waitFor();
  expect(await focused(page)).toBe('Edit');
  expect(await page.getByRole('status', { name: 'Secret' }).count()).toBe(0);
  await press(page, 'Rotate secret');
  expect(await focused(page)).toBe('Cancel');
  await press(page, 'Rotate now');
  expect(await secretOf(page)).toMatch(/^whsec_/);
  expect(await secretOf(page)).not.toBe(first);
  expect(await page.getByRole('button', { name: 'Edit' }).isDisabled()).toBe(true);
  await press(page, 'Done');
  await press(page, 'New alert');
  await page.getByText('Cost · Resource type: Agent').waitFor();
  await press(page, 'Cancel');
  await press(page, 'Delete');
  expect(await focused(page)).toBe('Cancel');
  await press(page, 'Delete permanently');
  await page.getByText('$300.00 per month').waitFor({ state: 'detached' });
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Set an alert' }).waitFor();
});

it('a changed form stays open until it is saved or discarded, and a secret until the user confirms it', async () => {
  const page = await open('acme', 'admin');
  await press(page, 'Set an alert');
  await page.getByLabel('Name').fill('Discarded');
  await dismiss(page);
  expect(await page.getByLabel('Name').inputValue()).toBe('Discarded');
  const dialog = page.waitForEvent('dialog');
  await page.evaluate(() => void setTimeout(() => location.reload()));
  await (await dialog).dismiss();
  await press(page, 'Discard');
  await press(page, 'New alert');
  await page.getByLabel('Name').fill('Slow');
  await page.getByLabel('Amount (USD per month)').fill('150');
  await page.getByLabel('Webhook URL').fill('https://example.com/hooks');
  let release = () => {};
  const responded = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route(/\/alerts$/, async (route) => {
    if (route.request().method() === 'POST') await responded;
    await route.continue();
  });
  await press(page, 'Create alert');
  await page.getByRole('button', { name: 'Discard', disabled: true }).waitFor();
  await dismiss(page);
  release();
  await page.getByRole('status', { name: 'Secret' }).waitFor();
  await dismiss(page);
  expect(await secretOf(page)).toMatch(/^whsec_/);
});

it('an alert shows its fired thresholds and deliveries, which only an admin can resend', async () => {
  const { api } = explorer();
  // Redis expires deliveries by its own clock.
  const now = new Date();
  api.clock.now = now;
  // The queries of the page end at the current second, which may be the same second.
  const at = new Date(now.getTime() - 2_000).toISOString();
  await api.seed([event({ accountId: 'globex', cost: '40.25', at })]);
  const client = new MeterlineClient({ baseUrl: api.url, credential: await api.key('globex') });
  const newAlert = {
    name: 'Budget',
    period: 'month',
    measure: 'cost',
    amount: '80',
    url: 'https://example.com/',
  } as const;
  const { id } = await client.alerts.create('globex', newAlert);
  const { alerts } = api.dependencies;
  const alert = await alerts.find(id);
  if (!alert) throw new Error('there is no alert');
  const period = periodAt('month', now.getTime());
  const fired = { threshold: 50, value: '40.250000004321', firedAt: now.toISOString() };
  const payload = webhookPayload(alert, 'usage.threshold_reached', period, now.getTime(), fired);
  await alerts.fire(alert, period.startTime, fired, payload);
  const [delivery] = await client.alerts.deliveries('globex', id);
  const sent = delivery && (await alerts.deliveries.find(delivery.id));
  if (!sent) throw new Error('there is no delivery');
  const leaseUntil = now.getTime() + 60_000;
  await alerts.deliveries.claim(now.getTime(), leaseUntil, 1);
  await alerts.deliveries.noteAttempt(sent, { at: now, outcome: '503', state: 'failed', leaseUntil, dueAt: 0 });

  const member = await open('globex', 'member', 'real');
  await press(member, 'Alerts 1 fired');
  await member.getByText(/^50% fired on .* at \$40\.25$/).waitFor();
  await member.getByTitle('$40.250000004321').waitFor();
  await press(member, 'Deliveries');
  await member.getByText('Failed after 1 attempt: 503').waitFor();
  expect(await member.getByRole('dialog').getByRole('button').allTextContents()).toEqual(['Close', 'Deliveries']);
  expect(await accessibilityProblems(member)).toEqual([]);

  const page = await open('globex', 'admin', 'real');
  await page.getByText('50% of the budget of $80.00').waitFor();
  await press(page, 'Alerts 1 fired');
  await press(page, 'Send test');
  await page.getByText('Test', { exact: true }).waitFor();
  await alerts.fire(alert, period.startTime, { ...fired, threshold: 80 }, payload);
  await page.getByText(/^80% fired on/).waitFor();
  await press(page, 'Resend');
  await page.getByText('Pending after 1 attempt: 503').waitFor();
  for (let sends = 0; sends < 10; sends += 1) await client.alerts.test('globex', id);
  await page.getByText('The list shows the newest 10 of 13.').waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  // Another admin deletes the alert in the editor.
  await press(page, 'Edit');
  await client.alerts.delete('globex', id);
  await press(page, 'New alert');
  await press(page, 'Cancel');
  expect(await focused(page)).toBe('New alert');
  await press(page, 'New alert');
  await page.getByLabel('Name').fill('Next');
  await page.getByLabel('Amount (USD per month)').fill('90');
  await page.getByLabel('Webhook URL').fill('https://example.com/hooks');
  await press(page, 'Create alert');
  await page.getByText('$90.00 per month').waitFor();
  expect(await focused(page)).toContain('signing secret of “Next”');
});

it('a service without alerts has no alerts on the page', async () => {
  const prepare = (shown: Page) => shown.route(/\/alerts\?/, (route) => route.fulfill({ status: 404, json: {} }));
  const { page } = await explorer().visit({ key: explorer().key, view: 'account=acme', prepare });
  const requested = page.waitForResponse(/\/alerts\?/);
  await tableRows(page);
  await requested;
  expect(await page.getByRole('button', { name: /alert/i }).count()).toBe(0);
  await page.getByRole('button', { name: 'Table', exact: true }).click();
});

it('an alert can send e-mails or write to Slack, and an edit without a URL keeps the URL, which the page does not show', async () => {
  const { alerts } = explorer().api.dependencies;
  const targets = async () =>
    (await alerts.listOf('acme')).map(({ name, format, url, to }) => ({ name, format, url, to }));
  const url = 'https://hooks.slack.com/services/T000/B000/secret';
  const page = await open('acme', 'admin');
  await page.getByRole('button', { name: /^(Set an alert|Alerts)/ }).click();
  const fill = async (name: string, kind: string, target: string, text: string) => {
    if ((await page.getByLabel('Name').count()) === 0) await press(page, 'New alert');
    await page.getByLabel('Name').fill(name);
    await page.getByLabel('Amount (USD per month)').fill('900');
    await page.getByLabel('Forecast (percent').fill('100');
    await page.getByRole('combobox', { name: 'Send' }).click();
    await page.getByRole('option', { name: kind }).click();
    await page.getByLabel(target).fill(text);
    await press(page, 'Create alert');
    await page.getByRole('article', { name }).waitFor();
  };
  await fill('By mail', 'E-mail', 'E-mail addresses', 'a@example.com; b@example.com');
  const mail = page.getByRole('article', { name: 'By mail' });
  await mail.getByText('a@example.com, b@example.com').waitFor();
  await mail.getByText('Forecast 100% not fired this month').waitFor();
  await fill('In Slack', 'Slack', 'Webhook URL', url);
  const slack = page.getByRole('article', { name: 'In Slack' });
  await slack.getByText('Slack: https://hooks.slack.com', { exact: true }).waitFor();
  expect(await page.getByRole('status', { name: 'Secret' }).count()).toBe(0);
  expect(await slack.getByRole('button', { name: 'Rotate secret' }).count()).toBe(0);
  await slack.getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('Name').fill('In another channel');
  await press(page, 'Save');
  await page.getByRole('article', { name: 'In another channel' }).waitFor();
  expect(await targets()).toEqual(
    expect.arrayContaining([
      { name: 'By mail', format: 'standard', to: ['a@example.com', 'b@example.com'] },
      { name: 'In another channel', format: 'slack', url },
    ]),
  );
});
