/** ClickHouse is killed, or its network fails so that the result of an insert is unknown. */
import type { Fault, Scene } from './fault.js';
import { killAndStart } from './strikes.js';
import type { LinkTreatment } from './tcp-proxy.js';
import { holdsWithin, pause } from './waiting.js';

const PASS: LinkTreatment = { kind: 'pass' };
const STRUCK_WITHIN_MS = 60_000;
/** An insert of these rounds is about 20 KB. */
const CUT_WITHIN_BYTES = 20_000;

export const clickhouseKilled: Fault = {
  name: 'clickhouse-killed',
  injects: '`kill -9` of ClickHouse, once or twice, restarted on the same ports with the same data',
  workers: 2,
  proxied: 'nothing',
  weight: 14,
  strike: (scene) => killAndStart(scene, () => scene.site.clickhouse),
};

export const clickhouseHangs: Fault = {
  name: 'clickhouse-hangs',
  injects: 'connections to ClickHouse stay open and silent; they go on later or, in some rounds, never',
  workers: 2,
  proxied: 'clickhouse',
  weight: 8,
  strike: async ({ site, random, brief, signal }) => {
    site.clickhouseLink.treat({ kind: 'hang' });
    await pause(brief ? 3_000 : random.integer(2_000, 20_000), signal);
    // The worker then waits until its own time limit for an insert.
    if (!brief && random.chance(0.5)) site.clickhouseLink.forsake();
    site.clickhouseLink.treat(PASS);
  },
};

export const clickhouseCuts: Fault = {
  name: 'clickhouse-cuts',
  injects: 'connections to ClickHouse are reset in the middle of an insert’s body',
  workers: 2,
  proxied: 'clickhouse',
  weight: 12,
  strike: (scene) => breakLinks(scene, { kind: 'cut', afterBytes: () => scene.random.integer(1, CUT_WITHIN_BYTES) }, 6),
};

export const clickhouseSwallows: Fault = {
  name: 'clickhouse-swallows',
  injects: 'the answer to an insert that has succeeded is lost',
  workers: 2,
  proxied: 'clickhouse',
  weight: 12,
  strike: (scene) => breakLinks(scene, { kind: 'swallow' }, 6),
};

/** Breaks connections until a random number of them, at most `most`, have broken. */
async function breakLinks(
  { site, random, signal, complain }: Scene,
  treatment: LinkTreatment,
  most: number,
): Promise<void> {
  const wanted = random.integer(1, most);
  site.clickhouseLink.treat(treatment);
  const struck = await holdsWithin(STRUCK_WITHIN_MS, signal, () => site.clickhouseLink.strikes >= wanted);
  if (!struck) complain(`only ${site.clickhouseLink.strikes} of ${wanted} connections were broken`);
  site.clickhouseLink.treat(PASS);
}
