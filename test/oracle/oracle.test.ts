/**
 * Random histories through the real queue, worker and HTTP API, against the oracle, to the last digit of the raw text:
 * answered from sealed cells and from the events alone, while sealers run and die and events arrive after them.
 * More cases, another seed, one failing case again: `npm run test:oracle -- --long --seed N --path P`.
 */
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { type Deployment, deploy } from './deployment.js';
import { type History, history, roundsOf, type Sketch } from './histories.js';
import { Oracle, type OraclePriceBook } from './model.js';
import { trickyBook } from './price-book.js';
import { type Question, questionDraft, toQuestion } from './questions.js';
import { RandomSealing } from './random-sealing.js';

const CASES = Number(process.env.ORACLE_CASES ?? 200);
const SEED = Number(process.env.ORACLE_SEED ?? Date.now() % 1_000_000_000);
/** Where in its seed's sequence a failure lies, as fast-check prints it. */
const PATH = process.env.ORACLE_PATH;
/** After each the cells of some more hours are sealed. */
const ROUNDS = 2;
/** Histories on their way at a time: accounts share jobs' inserts, as in production. */
const LANES = 20;
/** A failure is worth a wait, but not any. */
const SHRINKING_MS = 180_000;
/** The difference belongs to the report. */
const REPORT = { includeErrorInReport: true };
/** Shrinking asks for more accounts than there are cases. */
const ACCOUNTS_WITH_OWN_PRICES = CASES + 1_000;

jest.setTimeout(CASES * 3_000 + 600_000);

let deployment: Deployment;
let ownPrices: string[];
let sealing: RandomSealing;
beforeAll(async () => {
  deployment = await deploy();
  sealing = new RandomSealing(deployment.warehouse, SEED, ROUNDS * CASES);
  ownPrices = Array.from({ length: ACCOUNTS_WITH_OWN_PRICES }, (_, n) => `dear-${n}-${deployment.name}`);
  await deployment.startWorker(trickyBook(ownPrices));
});
afterAll(() => deployment.stop());

const scenario = fc
  .record({ past: history, drafts: fc.array(questionDraft, { minLength: 1, maxLength: 3, size: 'max' }) })
  .map(({ past, drafts }) => ({ past, questions: drafts.map((draft) => toQuestion(draft, past)) }));

describe('the service and the oracle', () => {
  it(`agree about ${CASES} random histories`, async () => {
    process.stdout.write(`oracle: ${PATH === undefined ? `${CASES} cases` : `case ${PATH}`}, seed ${SEED}\n`);
    expect(PATH === undefined ? await anyFailure() : await failureAt(SEED, PATH)).toBeUndefined();
  });
});

/** Runs all cases, in lanes, until one fails; then that one alone, to make it small. @returns what went wrong */
async function anyFailure(): Promise<string | undefined> {
  let found: { readonly seed: number; readonly path: string; readonly report: string } | undefined;
  const lane = async (seed: number) => {
    const property = fc.asyncProperty(scenario, async ({ past, questions }) => {
      if (!found) await compare(past, questions);
    });
    const details = await fc.check(property, {
      seed,
      ...REPORT,
      numRuns: Math.ceil(CASES / LANES),
      endOnFailure: true,
    });
    if (!details.failed) return;
    found ??= { seed, path: details.counterexamplePath ?? '', report: fc.defaultReportMessage(details) ?? '' };
  };
  await Promise.all(Array.from({ length: LANES }, (_, n) => lane(SEED + n)));
  if (!found) return undefined;
  // What depends on its neighbours, or on time, may not fail alone.
  return (await failureAt(found.seed, found.path)) ?? `${found.report}\n\nBut it did not fail a second time.`;
}

/** The case as small as it still fails, and how to see it again; undefined if it does not fail. */
async function failureAt(seed: number, path: string): Promise<string | undefined> {
  const property = fc.asyncProperty(scenario, ({ past, questions }) => compare(past, questions));
  const details = await fc.check(property, {
    seed,
    path,
    ...REPORT,
    numRuns: 1,
    interruptAfterTimeLimit: SHRINKING_MS,
  });
  if (!details.failed) return undefined;
  const again = `npm run test:oracle -- --seed ${seed} --path ${details.counterexamplePath}`;
  return `${fc.defaultReportMessage(details)}\n\nAgain: ${again}`;
}

/** One history of an account that has never been there before, asked about after each round of jobs. */
async function compare(past: History, questions: readonly Question[]): Promise<void> {
  const accountId = newAccount(past);
  const customer = await deployment.customer(accountId);
  const { early, late } = roundsOf(past, accountId);
  // Which of two contradicting payloads has won shows in the answers; a loser never comes back.
  let worlds = [new Oracle(bookOf(accountId, past))];
  for (const { jobs, asked } of [
    { jobs: early, asked: questions.slice(0, 1) },
    { jobs: late, asked: questions },
  ]) {
    await send(jobs, worlds);
    worlds = worlds.flatMap((world) => world.worlds(accountId));
    await sealing.advance();
    for (const question of asked) {
      const { fromCells, fromEvents } = await customer.ask(question);
      expect({ question, fromCells }).toEqual({ question, fromCells: fromEvents });
      worlds = agreeing(worlds, accountId, question, fromCells);
    }
  }
}

/** Tells the oracles of the jobs, and insists on the service refusing what they refuse. */
async function send(jobs: readonly Sketch[][], worlds: readonly Oracle[]): Promise<void> {
  const ids = await deployment.deliver(jobs.map((events) => (events.length === 1 ? events[0] : { events })));
  const refusals = worlds.map((world) =>
    jobs.flatMap((events, job) =>
      events.flatMap((event, position) => (world.accept(event) === 'refused' ? [`${ids[job]} ${position}`] : [])),
    ),
  );
  expect(await deployment.refused(ids)).toEqual(refusals[0]?.sort());
}

/** The oracles that the service agrees with, at least one. */
function agreeing(
  worlds: readonly Oracle[],
  accountId: string,
  question: Question,
  answer: readonly string[],
): Oracle[] {
  const expected = worlds.map((world) => answerOf(world, accountId, question));
  const found = worlds.filter((_, n) => isDeepStrictEqual(expected[n], answer));
  // With the question beside it a difference explains itself.
  if (found.length === 0) expect({ question, answer }).toEqual({ question, answer: expected[0] });
  return found;
}

function answerOf(world: Oracle, accountId: string, { about, query }: Question): string[] {
  return about === 'metrics' ? world.pages(accountId, query) : [world.resourceTypes(accountId, query)];
}

let accounts = 0;
let accountsWithOwnPrices = 0;

function newAccount(past: History): string {
  if (past.ownPrices) {
    accountsWithOwnPrices += 1;
    return ownPrices[accountsWithOwnPrices - 1] ?? outOfAccounts();
  }
  accounts += 1;
  return `plain-${accounts}-${deployment.name}${past.nameSuffix}`;
}

function outOfAccounts(): never {
  throw new Error(`more than ${ACCOUNTS_WITH_OWN_PRICES} accounts with their own prices were needed`);
}

/** The worker's book as far as it is about this account. */
function bookOf(accountId: string, { ownPrices }: History): OraclePriceBook {
  return trickyBook(ownPrices ? [accountId] : []);
}
