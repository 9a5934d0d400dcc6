/** What axe finds on a page. */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';

/** What people notice. Source: axe-core, "impact" of a finding. */
const GRAVE: readonly (string | null | undefined)[] = ['serious', 'critical'];

const axe = readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export async function graveFindings(page: Page): Promise<string[]> {
  // Through the driver: the page's policy forbids scripts from elsewhere.
  await page.evaluate(await axe);
  const { violations }: AxeResults = await page.evaluate("axe.run({ resultTypes: ['violations'] })");
  return violations
    .filter(({ impact }) => GRAVE.includes(impact))
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html, any }) => `${html} ${any[0]?.message ?? ''}`).join('; ')}`);
}
