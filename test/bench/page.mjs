/**
 * How long the web page takes, in a browser with an empty cache: to show the first figures and to draw the first chart of the demo
 * account, and to sort the table of an account with 1,500 groups that it has read. The median of five visits to the stack of
 * `npm start`, which must be running (METERLINE_DATA_DIR, as for the command line). The groups are those of an account of their own,
 * which stays in the stack; its events are the same ones each time.
 *
 * Usage: npm run bench:page
 */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { chromium } from 'playwright-core';
import { ensureChromium } from '../setup/chromium-binary.mjs';

const VISITS = 5;
const MARK = 'meterline:first-view';
const FIGURES_MARK = 'bench:first-figures';
const ARGUMENTS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking'];
const BIN = fileURLToPath(new URL('../../packages/cli/bin/meterline.js', import.meta.url));
const GROUPS = { account: 'bench-page', count: 1_500, day: '2026-01-05', dearest: 'group-0857' };

const run = promisify(execFile);
const dataDir = process.env.METERLINE_DATA_DIR ?? '.meterline';
const localStack = await readFile(join(dataDir, 'local.json'), 'utf8').catch(() => {
  console.error(`bench:page: no stack is running in ${dataDir}; run "npm start" in another terminal first`);
  process.exit(1);
});
const { account, adminKey, apiUrl, collectorUrl } = JSON.parse(localStack);
const groupsKey = await storeGroups();
const browser = await chromium.launch({ executablePath: await ensureChromium(), args: ARGUMENTS });
try {
  const visits = [];
  for (let visit = 0; visit < VISITS; visit += 1) visits.push({ ...(await firstView()), ...(await sorting()) });
  for (const name of Object.keys(visits[0])) {
    const values = visits.map((visit) => Math.round(visit[name]));
    console.log(`${name.padEnd(12)} median ${median(values)} ms of ${values.join(', ')}`);
  }
} finally {
  await browser.close();
}

/** Milliseconds from the navigation to the load event, to the first figure and to the drawn view. */
async function firstView() {
  return visit(adminKey, async (page) => {
    await page.addInitScript((mark) => {
      new MutationObserver((_, observer) => {
        if (!document.querySelector('.figure-value')) return;
        performance.mark(mark);
        observer.disconnect();
      }).observe(document, { childList: true, subtree: true });
    }, FIGURES_MARK);
    await page.goto(`${apiUrl}/?account=${encodeURIComponent(account)}`);
    await page.waitForFunction((mark) => performance.getEntriesByName(mark).length > 0, MARK);
    return page.evaluate(
      ([figures, view]) => ({
        load: performance.getEntriesByType('navigation')[0].loadEventEnd,
        firstFigures: performance.getEntriesByName(figures)[0].startTime,
        firstView: performance.getEntriesByName(view)[0].startTime,
      }),
      [FIGURES_MARK, MARK],
    );
  });
}

/** Milliseconds from a click on a column's heading to the picture with the groups in that order, by name and by cost. */
async function sorting() {
  return visit(groupsKey, async (page) => {
    const query = new URLSearchParams({
      ...{ account: GROUPS.account, group: 'resource_name', sort: 'name' },
      ...{ from: `${GROUPS.day}T00:00:00Z`, to: `${GROUPS.day}T23:00:00Z` },
    });
    await page.goto(`${apiUrl}/?${query}`);
    await page.getByRole('row', { name: 'group-0000' }).waitFor();
    return {
      sortByName: await sortedBy(page, 'Resource', 'group-1499'),
      sortByCost: await sortedBy(page, 'Cost (USD)', GROUPS.dearest),
    };
  });
}

/** @param first what the first row then begins with */
function sortedBy(page, heading, first) {
  return page.evaluate(
    async ([label, name]) => {
      const button = [...document.querySelectorAll('th button')].find(({ textContent }) => textContent === label);
      const begun = performance.now();
      button.click();
      while (!document.querySelector('tbody tr')?.textContent?.startsWith(name)) {
        await new Promise((drawn) => requestAnimationFrame(drawn));
      }
      // The frame after the one with the change begins when that has been drawn.
      await new Promise((drawn) => requestAnimationFrame(drawn));
      return performance.now() - begun;
    },
    [heading, first],
  );
}

async function visit(key, measure) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  await page.addInitScript((credential) => sessionStorage.setItem('meterline.credential', credential), key);
  const times = await measure(page);
  await context.close();
  return times;
}

/** @returns the key of an admin of the account with the groups, when all their events are in its answers */
async function storeGroups() {
  const [emitter, admin] = [await createKey('emitter'), await createKey('admin')];
  const events = Array.from({ length: GROUPS.count }, (_, index) => ({
    eventId: `bench-page-${index}`,
    timestamp: `${GROUPS.day}T12:00:00Z`,
    accountId: GROUPS.account,
    workspace: 'bench',
    resourceType: 'agent',
    resourceName: `group-${String(index).padStart(4, '0')}`,
    billingDimension: 'agent_compute_runtime_gbs',
    // Not in the order of their names: 7 × 857 is 1,499 beyond a multiple of 1,500.
    usage: String(1 + ((index * 7) % GROUPS.count)),
  }));
  const sent = await fetch(`${collectorUrl}/v0/accounts/${GROUPS.account}/events`, {
    method: 'POST',
    headers: { authorization: `Bearer ${emitter}`, 'content-type': 'application/json' },
    body: JSON.stringify(events),
  });
  if (sent.status !== 202) throw new Error(`the collector answered ${sent.status}: ${await sent.text()}`);
  const query = new URLSearchParams({
    ...{ startTime: `${GROUPS.day}T00:00:00Z`, endTime: `${GROUPS.day}T23:00:00Z`, limit: '1' },
    ...{ resolution: 'hourly', groupBy: 'resource_name', resourceName: events.at(-1).resourceName },
  });
  const headers = { authorization: `Bearer ${admin}` };
  while (true) {
    const answer = await fetch(`${apiUrl}/v0/accounts/${GROUPS.account}/metrics?${query}`, { headers });
    if ((await answer.json()).data?.length) return admin;
    await sleep(100);
  }
}

async function createKey(role) {
  const args = [BIN, 'keys', 'create', '--account', GROUPS.account, '--role', role, '--json'];
  return JSON.parse((await run(process.execPath, args)).stdout).key;
}

function median(values) {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
}
