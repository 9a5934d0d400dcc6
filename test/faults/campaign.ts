/** Runs many rounds, several at a time; each lane has its own site. */
import { inspect } from 'node:util';
import type { Fault } from './fault.js';
import { type FinishedRound, playRound, type RoundOptions, type RoundResult } from './round.js';
import { SeededRandom } from './seeded-random.js';
import { Site, type SiteOptions } from './site.js';
import { isClean } from './verdict.js';

const ROUND_WITHIN_MS = 15 * 60_000;

export interface CampaignOptions {
  readonly rounds: number;
  readonly seed: number;
  readonly faults: readonly Fault[];
  readonly lanes: number;
  /** Whether Redis is a Cluster where the fault does not say. */
  readonly onCluster: boolean;
  readonly brief: boolean;
  /** Called with each result when its round ends. */
  readonly onResult: (result: RoundResult) => void;
}

/** Faults by weight, each at least once. Round n of a fault has the seed `seed + n`, with which it can be repeated. */
function planRounds({ rounds, seed, faults, brief }: CampaignOptions): RoundOptions[] {
  const weight = faults.reduce((sum, fault) => sum + fault.weight, 0);
  const plan = faults.flatMap((fault) =>
    Array.from({ length: Math.max(1, Math.round((rounds * fault.weight) / weight)) }, (_, n) => ({
      fault,
      seed: seed + n,
      brief,
    })),
  );
  return new SeededRandom(seed).shuffled(plan);
}

function siteFor({ needsSmallDisk, redis }: Fault, { onCluster }: CampaignOptions): SiteOptions {
  return { onSmallDisk: needsSmallDisk === true, redis: redis ?? (onCluster ? 'cluster' : 'server') };
}

/** @throws the abort's reason, after every process has ended and every file is removed */
export async function runCampaign(options: CampaignOptions, signal: AbortSignal): Promise<RoundResult[]> {
  const plans = new Map<string, { readonly site: SiteOptions; readonly plan: RoundOptions[] }>();
  for (const round of planRounds(options)) {
    const site = siteFor(round.fault, options);
    const key = JSON.stringify(site);
    const { plan } = plans.get(key) ?? { plan: [] as RoundOptions[] };
    plan.push(round);
    plans.set(key, { site, plan });
  }
  const lanes = [...plans.values()].flatMap(({ site, plan }) => {
    // A small disk is one lane's.
    const most = site.onSmallDisk ? 1 : Math.min(options.lanes, plan.length);
    return Array.from({ length: most }, () => runLane(site, plan, options, signal));
  });
  const ended = await Promise.allSettled(lanes);
  return ended.flatMap((lane) => {
    if (lane.status === 'rejected') throw lane.reason;
    return lane.value;
  });
}

/** Runs rounds from the plan until none is left. A site is replaced when its round broke off. */
async function runLane(
  siteOptions: SiteOptions,
  plan: RoundOptions[],
  options: CampaignOptions,
  signal: AbortSignal,
): Promise<RoundResult[]> {
  const results: RoundResult[] = [];
  while (plan.length > 0) {
    signal.throwIfAborted();
    const site = await Site.open(siteOptions);
    try {
      await site.startQuery();
      results.push(...(await runOnSite(site, plan, options, signal)));
    } finally {
      await site.close();
    }
  }
  return results;
}

async function runOnSite(
  site: Site,
  plan: RoundOptions[],
  { onResult }: CampaignOptions,
  signal: AbortSignal,
): Promise<RoundResult[]> {
  const finished: FinishedRound[] = [];
  const brokenOff: RoundResult[] = [];
  while (brokenOff.length === 0) {
    const next = plan.shift();
    if (!next) break;
    try {
      const round = await playRound(site, next, AbortSignal.any([signal, AbortSignal.timeout(ROUND_WITHIN_MS)]));
      finished.push(round);
      onResult(round.result);
    } catch (error) {
      signal.throwIfAborted();
      const result = brokenOffResult(next, error);
      brokenOff.push(result);
      onResult(result);
    }
  }
  const rechecked: RoundResult[] = [];
  for (const round of finished) rechecked.push(await laterResult(round));
  return [...rechecked, ...brokenOff];
}

/** Compares a clean round once more: later rounds on the same site must not have changed its events. */
async function laterResult({ result, recheck }: FinishedRound): Promise<RoundResult> {
  if (!isClean(result)) return result;
  try {
    const later = await recheck();
    return isClean(later) ? result : { ...result, ...later, complaints: [...later.complaints, 'was right at first'] };
  } catch (error) {
    return { ...result, complaints: [`could not be compared again: ${inspect(error)}`] };
  }
}

function brokenOffResult({ fault, seed }: RoundOptions, error: unknown): RoundResult {
  const complaint = `broke off: ${inspect(error)}`;
  const nothing = { events: 0, lost: [], doubled: [], stuck: 0, recoveryMs: 0 };
  return { fault: fault.name, seed, ...nothing, complaints: [complaint] };
}
