/**
 * Sends random histories through the real queue, worker and HTTP API, and compares the raw text of every response with the
 * oracle's: answered from sealed rollup rows, from memory and from events alone, while sealers and recomputers run and die and late
 * events arrive.
 * For more cases, another seed, or one failing case: `ORACLE_SEED=N ORACLE_PATH=P npm run test:oracle`.
 */
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { DIRTY_LIMITS, recomputeDirtyHours, sealNext, type Warehouse } from '@meterline/warehouse';
import fc from 'fast-check';
import { holds } from '../fuzz/run.js';
import { pausing } from '../harness/interleaving.js';
import { recomputeAll, uniquePrefix } from '../harness/stack.js';
import { type Deployment, deploy } from './deployment.js';
import { trickyBook } from './event-rules.js';
import { ANCHORS, distance, type History, history, roundsOf, type Sketch } from './histories.js';
import { Oracle, type OraclePriceBook, type OracleQuery } from './model.js';
import { drawnRequest, type Request, toRequest } from './requests.js';

const CASES = Number(process.env.ORACLE_CASES ?? 5);
const SEED = Number(process.env.ORACLE_SEED ?? Date.now() % 1_000_000_000);
/** The position of a failing case in the sequence of its seed, as fast-check prints it. */
const PATH = process.env.ORACLE_PATH;
/** The rollup rows of some more hours are sealed after each. */
const ROUNDS = 2;
/**
 * Histories that run at the same time: rows of several accounts share an insert, as in production. Each part has one case at
 * least.
 */
const PARALLEL = Math.min(20, CASES);
/** The time limit of all cases, and of making one that fails smaller. */
const LIMIT_MS = CASES * 3_000 + 300_000;
/** More than the cases, because shrinking needs further accounts. */
const ACCOUNTS_WITH_OWN_PRICES = CASES + 1_000;
/** A part of account names that no other test file uses; Redis is shared. */
const NAME = uniquePrefix();
const OWN_PRICES = Array.from({ length: ACCOUNTS_WITH_OWN_PRICES }, (_, n) => `dear-${n}-${NAME}`);

jest.setTimeout(LIMIT_MS + 300_000);

let deployment: Deployment;
let maintenance: RandomMaintenance;
beforeAll(async () => {
  deployment = await deploy(trickyBook(OWN_PRICES));
  maintenance = new RandomMaintenance(deployment.shards.all, SEED, ROUNDS * CASES);
});
afterAll(() => deployment.stop());

const scenario = fc
  .record({ past: history, allDrawn: fc.array(drawnRequest, { minLength: 1, maxLength: 3, size: 'max' }) })
  .map(({ past, allDrawn }) => ({ past, requests: allDrawn.map((drawn) => toRequest(drawn, past)) }));

it(`the service and the oracle agree about ${CASES} random histories`, async () => {
  process.stdout.write(`oracle: ${PATH === undefined ? `${CASES} cases` : `case ${PATH}`}, seed ${SEED}\n`);
  const runs = { count: CASES, parallel: PARALLEL, seed: SEED, path: PATH, limitMs: LIMIT_MS };
  await holds(scenario, runs, ({ past, requests }) => compare(past, requests));
});

/** Plays one history for two new accounts and compares the responses after each round of jobs. */
async function compare(past: History, requests: readonly Request[]): Promise<void> {
  const accountIds = newAccounts(past);
  const customer = await deployment.customer(...accountIds);
  const { early, late } = roundsOf(past, accountIds);
  // The responses show which of two contradicting payloads has won; the other must never win later.
  let worlds = [new Oracle(bookOf(accountIds[0], past))];
  for (const { jobs, requested } of [
    { jobs: early, requested: requests.slice(0, 1) },
    { jobs: late, requested: requests },
  ]) {
    await send(jobs, worlds);
    worlds = worlds.flatMap((world) => world.worlds(...accountIds));
    await maintenance.advance();
    for (const request of requested) {
      const query = queryOf(request, accountIds);
      const { fromRollups, fromEvents, fromMemory } = await customer.ask(request, query);
      expect({ request, fromRollups }).toEqual({ request, fromRollups: fromEvents });
      expect({ request, fromMemory }).toEqual({ request, fromMemory: fromRollups });
      worlds = agreeing(worlds, accountIds, { ...request, query }, fromRollups);
    }
  }
}

/** Gives the jobs to the oracles, and checks that the service rejects the same events. */
async function send(jobs: readonly Sketch[][], worlds: readonly Oracle[]): Promise<void> {
  const ids = await deployment.deliver(jobs.map((events) => (events.length === 1 ? events[0] : { events })));
  const rejections = worlds.map((world) =>
    jobs.flatMap((events, job) =>
      events.flatMap((event, position) => (world.accept(event) === 'rejected' ? [`${ids[job]} ${position}`] : [])),
    ),
  );
  expect(await deployment.rejected(ids)).toEqual(rejections[0]?.sort());
}

/** The oracles that agree with the service; at least one. */
function agreeing(
  worlds: readonly Oracle[],
  accountIds: readonly [string, string],
  request: Request,
  response: readonly string[],
): Oracle[] {
  const expected = worlds.map((world) => responseOf(world, accountIds, request));
  const found = worlds.filter((_, n) => isDeepStrictEqual(expected[n], response));
  // The query is compared too, so that a difference shows it.
  if (found.length === 0) expect({ request, response }).toEqual({ request, response: expected[0] });
  return found;
}

function responseOf(world: Oracle, accountIds: readonly [string, string], { about, query, role }: Request): string[] {
  const [accountId, second] = accountIds;
  if (about === 'resource types') return [world.resourceTypes(accountId, query)];
  if (about === 'metrics') return world.pages(accountId, query, role);
  const isSecondRequested = (query.account ?? accountIds).includes(second) && !query.excludeAccount?.includes(second);
  return world.pages(accountIds, query, isSecondRequested ? role : 'admin');
}

function queryOf({ query, accounts = {} }: Request, accountIds: readonly [string, string]): OracleQuery {
  const named = Object.entries(accounts).map(([filter, numbers]) => [filter, numbers.map((n) => accountIds[n])]);
  return { ...query, ...Object.fromEntries(named) };
}

let accounts = 0;
let accountsWithOwnPrices = 0;

function newAccounts(past: History): [string, string] {
  accounts += 1;
  const name = `${accounts}-${NAME}${past.nameSuffix}`;
  if (!past.ownPrices) return [`plain-${name}`, `Second-${name}`];
  accountsWithOwnPrices += 1;
  return [OWN_PRICES[accountsWithOwnPrices - 1] ?? outOfAccounts(), `Second-${name}`];
}

function outOfAccounts(): never {
  throw new Error(`more than ${ACCOUNTS_WITH_OWN_PRICES} accounts with their own prices were needed`);
}

/** The part of the worker's price book that applies to this account. */
function bookOf(accountId: string, { ownPrices }: History): OraclePriceBook {
  return trickyBook(ownPrices ? [accountId] : []);
}

/** What a process that is killed leaves behind: nothing, what readers respect but do not use yet, or all but its last call. */
const CALLS_OF_A_STEP = 3;
/** Half the times dirty hours stay as they are. */
const RECOMPUTED = fc.constantFrom('none', 'none', 'none', 'some', 'killed', 'all');

/** Seals, and recomputes dirty hours, while histories play: before, between and after their events, in complete and in interrupted steps. */
class RandomMaintenance {
  readonly #shards: readonly Warehouse[];
  /** The next watermarks, ascending, as epoch milliseconds. */
  readonly #watermarks: number[];
  readonly #recomputed: readonly string[];
  readonly #rounds: number;
  #passed = 0;

  /** @param rounds after how many calls of {@link advance} all anchors are sealed */
  constructor(shards: readonly Warehouse[], seed: number, rounds: number) {
    this.#shards = shards;
    this.#rounds = rounds;
    const perAnchor = Math.ceil(rounds / ANCHORS.length);
    const around = fc.sample(distance, { seed, numRuns: perAnchor * ANCHORS.length });
    this.#watermarks = around
      .map((milliseconds, index) => (ANCHORS[index % ANCHORS.length] ?? 0) + milliseconds)
      .sort((a, b) => a - b);
    this.#recomputed = fc.sample(RECOMPUTED, { seed, numRuns: rounds });
  }

  async advance(): Promise<void> {
    this.#passed += 1;
    await this.#seal(this.#passed % CALLS_OF_A_STEP);
    await this.#recompute(this.#passed % CALLS_OF_A_STEP);
  }

  /** Moves the watermarks past the next moments. Every second time, a sealer first dies in the middle of a step. */
  async #seal(calls: number): Promise<void> {
    const isPassed = Math.floor((this.#passed / this.#rounds) * this.#watermarks.length);
    const due = this.#watermarks[Math.min(isPassed, this.#watermarks.length - 1)] ?? 0;
    if (this.#passed % 2 === 0) await breakOff(this.#shards, calls, (mortal) => sealNext(mortal, due));
    while (await sealNext(this.#shards, due));
  }

  async #recompute(calls: number): Promise<void> {
    const what = this.#recomputed[this.#passed % this.#rounds];
    const some = (warehouse: Warehouse) => recomputeDirtyHours(warehouse, { ...DIRTY_LIMITS, hours: 5 });
    for (const shard of this.#shards) {
      if (what === 'some') await some(shard);
      if (what === 'killed') await breakOff([shard], calls, ([mortal = shard]) => some(mortal));
      if (what === 'all') await recomputeAll(shard);
    }
  }
}

/** Runs a step of a process that is killed after a number of writing calls. */
async function breakOff(
  shards: readonly Warehouse[],
  calls: number,
  step: (mortal: readonly Warehouse[]) => Promise<unknown>,
): Promise<void> {
  let made = 0;
  const died = new Error('the process was killed');
  const countCall = async () => {
    made += 1;
    if (made > calls) throw died;
  };
  try {
    await step(shards.map((shard) => pausing(shard, countCall, ['run'])));
  } catch (error) {
    if (error !== died) throw error;
  }
}
