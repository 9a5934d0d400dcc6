/**
 * Who may send events: the collector's operation for every kind of caller, as the authorisation matrix has those of the query
 * service. Source: docs/decisions/0016.
 */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { type CallerKind, callersOf, startTokenIssuer, type TokenIssuer } from '../contract/callers.js';
import { type CollectorFixture, event, startCollectorFixture } from '../harness/collector.js';

const DENIED = '403 forbidden';
const UNSCOPED = '403 insufficient_scope';
const ACCEPTED = '202';

let issuer: TokenIssuer;
let site: CollectorFixture;
const account = `acme-${randomUUID()}`;
const callers = callersOf(() => ({ keys: site.keys, issuer, now: new Date(), account }));

const OUTCOMES: readonly (readonly [kind: CallerKind, outcome: string])[] = [
  ...callers.turnedAway,
  ['an admin key', DENIED],
  ['an admin key in X-Svc-Authorization', DENIED],
  ['an admin key in both headers', DENIED],
  ['a member key', DENIED],
  ['a member key in X-Svc-Authorization', DENIED],
  ['an emitter key', ACCEPTED],
  ['an operator key', DENIED],
  ['an emitter key of another account', DENIED],
  ['an admin key of another account', DENIED],
  ['a member key of another account', DENIED],
  ['an admin key of ACME', DENIED],
  ['an admin token', ACCEPTED],
  ['a member token', DENIED],
  ['an admin token of two accounts', ACCEPTED],
  ['an admin token of another account', DENIED],
  ['an admin token of ACME', DENIED],
  ['a token of no account', DENIED],
  ['a token without accounts', DENIED],
  ['a token with a role that does not exist', DENIED],
  ['an admin token without scopes', UNSCOPED],
  ['an admin token with another scope', UNSCOPED],
  ['an admin token with the scope admin', ACCEPTED],
  ['a member token with the scope admin', DENIED],
  ['a stranger’s token with the scope admin', DENIED],
  ['an admin token with the scope apiKey:write', UNSCOPED],
  ['a member token with the scope apiKey:write', UNSCOPED],
  ['an admin token with the scope apiKey:list', UNSCOPED],
  ['a member token with the scope apiKey:list', UNSCOPED],
];

beforeAll(async () => {
  issuer = await startTokenIssuer();
  site = await startCollectorFixture(issuer.env);
});
afterAll(async () => {
  await site.close();
  await issuer.close();
});

const errorAnswer = z.object({ error: z.string() });

describe('events of an account', () => {
  it.each(OUTCOMES)('events of an account that are sent by %s get %s', async (kind, outcome) => {
    const sent = event();
    const { status, body } = await site.sendAs(await callers.all[kind](), account, JSON.stringify([sent]));
    expect(status === 202 ? ACCEPTED : `${status} ${errorAnswer.parse(body).error}`).toBe(outcome);
    expect(await site.takeJobs()).toEqual(outcome === ACCEPTED ? [[{ ...sent, accountId: account }]] : []);
  });

  it('events of an account that are sent by a key that may not send them are answered with why, and what to use', async () => {
    for (const kind of ['an admin key', 'a member key'] as const) {
      const { body } = await site.sendAs(await callers.all[kind](), account, '[]');
      expect(body).toMatchObject({ message: expect.stringContaining('--role emitter') });
    }
    const { body } = await site.sendAs(await callers.all['an emitter key of another account'](), account, '[]');
    expect(body).toMatchObject({ details: [{ message: expect.stringMatching(/^There is no such account, or/) }] });
  });

  it('events of an account are sent by every kind of caller above', () => {
    expect(OUTCOMES.map(([kind]) => kind).sort()).toEqual(Object.keys(callers.all).sort());
  });
});
