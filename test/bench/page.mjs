/**
 * How long the web page takes, in a browser with an empty cache: to show the first figures and to draw the first chart of the demo
 * account. The median of five visits to the stack of `npm start`, which must be running (METERLINE_DATA_DIR, as for the command line).
 *
 * Usage: npm run bench:page
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { ensureChromium } from '../setup/chromium-binary.mjs';

const VISITS = 5;
const MARK = 'meterline:first-view';
const FIGURES_MARK = 'bench:first-figures';
const ARGUMENTS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking'];

const dataDir = process.env.METERLINE_DATA_DIR ?? '.meterline';
const localStack = await readFile(join(dataDir, 'local.json'), 'utf8').catch(() => {
  console.error(`bench:page: no stack is running in ${dataDir}; run "npm start" in another terminal first`);
  process.exit(1);
});
const { account, adminKey, apiUrl } = JSON.parse(localStack);
const browser = await chromium.launch({ executablePath: await ensureChromium(), args: ARGUMENTS });
try {
  const visits = [];
  for (let visit = 0; visit < VISITS; visit += 1) visits.push(await firstView());
  for (const name of Object.keys(visits[0])) {
    const values = visits.map((visit) => Math.round(visit[name]));
    console.log(`${name.padEnd(12)} median ${median(values)} ms of ${values.join(', ')}`);
  }
} finally {
  await browser.close();
}

/** Milliseconds from the navigation to the load event, to the first figure and to the drawn view. */
async function firstView() {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  await page.addInitScript((credential) => sessionStorage.setItem('meterline.credential', credential), adminKey);
  await page.addInitScript((mark) => {
    new MutationObserver((_, observer) => {
      if (!document.querySelector('.figure-value')) return;
      performance.mark(mark);
      observer.disconnect();
    }).observe(document, { childList: true, subtree: true });
  }, FIGURES_MARK);
  await page.goto(`${apiUrl}/?account=${encodeURIComponent(account)}`);
  await page.waitForFunction((mark) => performance.getEntriesByName(mark).length > 0, MARK);
  const times = await page.evaluate(
    ([figures, view]) => ({
      load: performance.getEntriesByType('navigation')[0].loadEventEnd,
      firstFigures: performance.getEntriesByName(figures)[0].startTime,
      firstView: performance.getEntriesByName(view)[0].startTime,
    }),
    [FIGURES_MARK, MARK],
  );
  await context.close();
  return times;
}

function median(values) {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
}
